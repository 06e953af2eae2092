-- What retention has removed, and what it may remove.

-- Until the end of the transaction.
-- name: TakeRetentionRole
SET LOCAL ROLE countersign_retention;

-- name: Dropped
SELECT coalesce(max(d.horizon), 0), coalesce(sum(d.facts), 0)::bigint, coalesce(sum(d.reports), 0)::bigint
FROM retentions d
WHERE d.tenant_id = $1;

-- name: NoteDropped
INSERT INTO retentions AS d (tenant_id, horizon, dropped_at, facts, reports) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant_id, horizon) DO UPDATE
SET dropped_at = excluded.dropped_at, facts = d.facts + excluded.facts, reports = d.reports + excluded.reports;

-- Actions among some that are older than what retention has kept.
-- name: ExpiredClaims
SELECT c.action_id
FROM claims c
WHERE c.tenant_id = $1 AND c.claim_id = ANY ($2::text[])
  AND c.requested_at < (SELECT max(d.horizon) FROM retentions d WHERE d.tenant_id = $1)
ORDER BY c.action_id
LIMIT 1;

-- Old facts, with whether an action about their subject or a linked one needs them.
-- name: OldFacts
WITH page AS MATERIALIZED (
  SELECT f.subject_id, f.occurred_at, f.raw_ref
  FROM facts f
  WHERE f.tenant_id = $1 AND f.occurred_at < $2 AND (f.subject_id, f.occurred_at, f.raw_ref) > ($3, $4, $5)
  ORDER BY f.subject_id, f.occurred_at, f.raw_ref
  LIMIT $6
), subjects AS MATERIALIZED (
  SELECT DISTINCT p.subject_id FROM page p
), near AS (
  SELECT s.subject_id, s.subject_id AS claimed FROM subjects s
  UNION ALL
  SELECT s.subject_id, l.linked_subject_id FROM subjects s JOIN subject_links l ON l.tenant_id = $1 AND l.subject_id = s.subject_id
), awaiting AS MATERIALIZED (
  SELECT c.contract_id, c.requested_at
  FROM due d JOIN claims c ON c.tenant_id = $1 AND c.claim_id = d.claim_id
  WHERE d.tenant_id = $1 AND c.requested_at < $2
), needed AS MATERIALIZED (
  SELECT DISTINCT n.subject_id
  FROM near n JOIN claims c ON c.tenant_id = $1 AND c.subject_id = n.claimed
  WHERE c.requested_at >= $2 - $7 OR c.latest_status IS DISTINCT FROM 'settled'
    OR EXISTS (SELECT FROM due d WHERE d.tenant_id = $1 AND d.claim_id = c.claim_id)
    OR EXISTS (SELECT FROM contract_reversals r WHERE r.contract_id = c.contract_id AND r.version = c.contract_version
      AND c.requested_at + r.within_seconds >= $2 - $7)
    OR EXISTS (SELECT FROM awaiting a WHERE a.contract_id = c.contract_id AND a.requested_at BETWEEN c.requested_at - $7 AND c.requested_at + $7)
)
SELECT p.subject_id, p.occurred_at, p.raw_ref, n.subject_id IS NOT NULL
FROM page p LEFT JOIN needed n ON n.subject_id = p.subject_id
ORDER BY p.subject_id, p.occurred_at, p.raw_ref;

-- name: DropFacts
DELETE FROM facts f WHERE f.tenant_id = $1 AND f.raw_ref = ANY ($2::text[]);

-- Runs that are old and still have their report, with whether it is needed.
-- name: OldReports
SELECT r.seq, c.requested_at >= $2 OR c.latest_status IS DISTINCT FROM 'settled'
    OR EXISTS (SELECT FROM due d WHERE d.tenant_id = $1 AND d.claim_id = r.claim_id)
    OR EXISTS (SELECT FROM outbox o WHERE o.tenant_id = $1 AND o.run_seq = r.seq)
FROM runs r JOIN claims c ON c.tenant_id = $1 AND c.claim_id = r.claim_id
WHERE r.tenant_id = $1 AND r.seq > $3 AND r.computed_at < $2 AND r.report::text IS DISTINCT FROM $5
ORDER BY r.seq
LIMIT $4;

-- name: DropReports
UPDATE runs r SET report = $3::json WHERE r.tenant_id = $1 AND r.seq = ANY ($2::bigint[]);
