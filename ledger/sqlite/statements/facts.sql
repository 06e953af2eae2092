-- Where the facts of this transaction will begin.
-- name: LastFact
SELECT coalesce(max(rowid), 0) FROM facts;

-- The first fact under a raw_ref stands (decision D8). Several rows are written by
-- as many tuples (see factInserts), which share what has a number.
-- name: IngestFacts
INSERT INTO facts (tenant_id, connection, ingested_at, raw_ref, source, fact_type, subject_id, subject_kind, occurred_at, attributes, content_hash)
VALUES (?1, ?2, ?3, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant_id, raw_ref) DO NOTHING;

-- Facts that stood with other content, in the order of the batch.
-- name: ConflictingFacts
SELECT f.raw_ref FROM jsonb_each(?2) j CROSS JOIN facts f ON f.tenant_id = ?1 AND f.raw_ref = j.value ->> 0
WHERE f.content_hash <> unhex(j.value ->> 1)
ORDER BY j.key;

-- Actions with a due row whose subject, or linked subject, got one of the facts
-- after a rowid or one of the links; with the earliest such fact (decision D16).
-- name: TouchedClaims
WITH fresh AS MATERIALIZED (
  SELECT f.subject_id, min(printf('%012d', f.occurred_at) || f.raw_ref) AS first FROM facts f
  WHERE f.rowid > ?2 AND EXISTS (SELECT 1 FROM due d WHERE d.tenant_id = ?1)
  GROUP BY f.subject_id
  UNION ALL
  SELECT value, NULL FROM json_each(?3)
), touched AS (
  SELECT subject_id, first FROM fresh
  UNION ALL
  SELECT l.linked_subject_id, f.first FROM fresh f CROSS JOIN subject_links l ON l.tenant_id = ?1 AND l.subject_id = f.subject_id
)
SELECT c.claim_id, coalesce('fact:' || substr(min(t.first), 13), 'recheck')
FROM touched t CROSS JOIN claims c ON c.tenant_id = ?1 AND c.subject_id = t.subject_id
CROSS JOIN due d ON d.tenant_id = ?1 AND d.claim_id = c.claim_id
GROUP BY c.claim_id;

-- Settled actions that one of the facts after a rowid undoes, or a known fact
-- that one of the links brings near (AC "reversal_observed").
-- name: ReversedClaims
WITH fresh AS MATERIALIZED (
  SELECT f.subject_id, f.source, f.fact_type, f.occurred_at, f.raw_ref FROM facts f
  WHERE f.rowid > ?2 AND f.fact_type IN (SELECT fact_type FROM contract_reversals)
), near AS (
  SELECT subject_id, source, fact_type, occurred_at, raw_ref FROM fresh
  UNION ALL
  SELECT l.linked_subject_id, f.source, f.fact_type, f.occurred_at, f.raw_ref
  FROM fresh f CROSS JOIN subject_links l ON l.tenant_id = ?1 AND l.subject_id = f.subject_id
  UNION ALL
  SELECT j.value ->> 0, f.source, f.fact_type, f.occurred_at, f.raw_ref
  FROM jsonb_each(?3) j CROSS JOIN facts f ON f.tenant_id = ?1 AND f.subject_id = j.value ->> 1
  WHERE f.fact_type IN (SELECT fact_type FROM contract_reversals)
)
SELECT c.claim_id, 'fact:' || substr(min(printf('%012d', n.occurred_at) || n.raw_ref), 13)
FROM near n CROSS JOIN claims c ON c.tenant_id = ?1 AND c.subject_id = n.subject_id AND c.latest_status = 'settled'
CROSS JOIN contract_reversals r ON r.contract_id = c.contract_id AND r.version = c.contract_version
  AND r.fact_type = n.fact_type AND (r.source IS NULL OR r.source = n.source)
WHERE n.occurred_at <= c.requested_at + r.within_seconds
  AND n.occurred_at >= c.requested_at - coalesce((SELECT max(s.clock_skew) FROM sources s WHERE s.tenant_id = ?1 AND s.source = n.source), 0)
GROUP BY c.claim_id;

-- Facts of some subjects, in the order of decision D5.
-- name: FactsOfSubjects
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes FROM facts f
WHERE f.tenant_id = ?1 AND f.subject_id IN (SELECT value FROM json_each(?2))
ORDER BY f.subject_id, f.occurred_at, f.raw_ref;

-- name: Orphans
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes FROM facts f
WHERE f.tenant_id = ?1 AND f.occurred_at >= ?3 AND f.occurred_at < ?4
  AND EXISTS (SELECT 1 FROM jsonb_each(?2) e WHERE e.value ->> 1 = f.fact_type AND (e.value ->> 0 IS NULL OR e.value ->> 0 = f.source))
  AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.tenant_id = ?1 AND c.subject_id = f.subject_id)
  AND NOT EXISTS (
    SELECT 1 FROM subject_links l CROSS JOIN claims c ON c.tenant_id = ?1 AND c.subject_id = l.linked_subject_id
    WHERE l.tenant_id = ?1 AND l.subject_id = f.subject_id)
ORDER BY f.occurred_at DESC, f.raw_ref DESC LIMIT ?5;

-- Facts of some types around a moment, the nearest of each type before it and from
-- it on: of a subject and those linked to it, and of subjects spelled like it.
-- name: NearFacts
WITH subjects AS MATERIALIZED (
  SELECT s.subject_id, min(s.alike) AS alike FROM (
    SELECT ?2 AS subject_id, 0 AS alike
    UNION ALL
    SELECT l.linked_subject_id, 0 FROM subject_links l WHERE l.tenant_id = ?1 AND l.subject_id = ?2
    UNION ALL
    SELECT value, 1 FROM json_each(?3)
  ) s GROUP BY s.subject_id
)
SELECT n.raw_ref, n.source, n.fact_type, n.subject_id, n.subject_kind, n.occurred_at, n.attributes, n.alike FROM (
  SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes, s.alike,
    row_number() OVER (PARTITION BY f.fact_type, s.alike, f.occurred_at < ?5 ORDER BY abs(f.occurred_at - ?5), f.raw_ref) AS place
  FROM subjects s CROSS JOIN facts f ON f.tenant_id = ?1 AND f.subject_id = s.subject_id
  WHERE f.fact_type IN (SELECT value FROM json_each(?4)) AND f.occurred_at >= ?6 AND f.occurred_at <= ?7
) n WHERE n.place <= ?8
ORDER BY n.occurred_at, n.raw_ref;

-- name: FactsByRef
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes, f.content_hash, f.ingested_at
FROM facts f
WHERE f.tenant_id = ?1 AND f.raw_ref IN (SELECT value FROM json_each(?2));
