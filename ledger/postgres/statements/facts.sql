-- One look-up by the whole key for each. = ANY takes half the time, but a server
-- that has not analyzed the table yet may keep a plan for it that reads all facts
-- of the tenant, a thousand times slower.
-- name: StandingFacts
SELECT n.raw_ref, f.content_hash
FROM unnest($2::text[]) AS n(raw_ref)
CROSS JOIN LATERAL (SELECT w.content_hash FROM facts w WHERE w.tenant_id = $1 AND w.raw_ref = n.raw_ref OFFSET 0) f;

-- Facts of the agent's side, by a function that writes no other source.
-- name: IngestAgentFacts
SELECT countersign_ingest_agent_facts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- Facts of given types whose subject, own or linked, no recorded action is about.
-- name: Orphans
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes::text
FROM facts f
WHERE f.tenant_id = $1
  AND ($2::bigint IS NULL OR f.occurred_at >= $2) AND ($3::bigint IS NULL OR f.occurred_at < $3)
  AND EXISTS (SELECT FROM unnest($4::text[], $5::text[]) AS e(source, fact_type)
    WHERE e.fact_type = f.fact_type AND (e.source = '' OR e.source = f.source))
  AND NOT EXISTS (SELECT FROM claims c WHERE c.tenant_id = $1 AND c.subject_id = f.subject_id)
  AND NOT EXISTS (SELECT FROM subject_links l JOIN claims c ON c.tenant_id = $1 AND c.subject_id = l.linked_subject_id
    WHERE l.tenant_id = $1 AND l.subject_id = f.subject_id)
ORDER BY f.occurred_at DESC, f.raw_ref DESC
LIMIT $6;

-- name: FactsOfSubjects
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes::text
FROM facts f
WHERE f.tenant_id = $1 AND f.subject_id = ANY ($2::text[])
ORDER BY f.subject_id, f.occurred_at, f.raw_ref;

-- name: FactsByRef
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes::text, f.content_hash, f.ingested_at
FROM facts f
WHERE f.tenant_id = $1 AND f.raw_ref = ANY ($2::text[]);
