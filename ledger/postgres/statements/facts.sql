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

-- Facts of some types around a moment, the nearest of each type before it and from
-- it on: of a subject and those linked to it, and of subjects spelled like it. Each
-- subject is looked up by itself: a join may be planned as a read of all facts.
-- name: NearFacts
WITH subjects AS MATERIALIZED (
  SELECT s.subject_id, min(s.alike) AS alike FROM (
    SELECT $2::text AS subject_id, 0 AS alike
    UNION ALL
    SELECT l.linked_subject_id, 0 FROM subject_links l WHERE l.tenant_id = $1 AND l.subject_id = $2
    UNION ALL
    SELECT a.subject_id, 1 FROM unnest($3::text[]) AS a(subject_id)
  ) s GROUP BY s.subject_id
)
SELECT n.raw_ref, n.source, n.fact_type, n.subject_id, n.subject_kind, n.occurred_at, n.attributes, n.alike > 0 FROM (
  SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes::text, s.alike,
    row_number() OVER (PARTITION BY f.fact_type, s.alike, f.occurred_at < $5 ORDER BY abs(f.occurred_at - $5), f.raw_ref) AS place
  FROM subjects s CROSS JOIN LATERAL (
    SELECT w.* FROM facts w
    WHERE w.tenant_id = $1 AND w.subject_id = s.subject_id AND w.occurred_at >= $6 AND w.occurred_at <= $7 AND w.fact_type = ANY ($4::text[])
    OFFSET 0
  ) f
) n WHERE n.place <= $8
ORDER BY n.occurred_at, n.raw_ref;

-- name: FactsByRef
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes::text, f.content_hash, f.ingested_at
FROM facts f
WHERE f.tenant_id = $1 AND f.raw_ref = ANY ($2::text[]);
