-- What retention has removed, and what it may remove.

-- name: Dropped
SELECT coalesce(max(d.horizon), 0), coalesce(sum(d.facts), 0), coalesce(sum(d.reports), 0) FROM retentions d WHERE d.tenant_id = ?1;

-- name: NoteDropped
INSERT INTO retentions (tenant_id, horizon, dropped_at, facts, reports) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (tenant_id, horizon) DO UPDATE
SET dropped_at = excluded.dropped_at, facts = facts + excluded.facts, reports = reports + excluded.reports;

-- The triggers let rows go while there is a row here, which no transaction leaves behind.
-- name: DeclareDropping
INSERT INTO dropping (declared_at) VALUES (?1);

-- name: EndDropping
DELETE FROM dropping;

-- Actions among some that are older than what retention has kept.
-- name: ExpiredClaims
SELECT c.action_id FROM claims c
WHERE c.tenant_id = ?1 AND c.claim_id IN (SELECT value FROM json_each(?2))
  AND c.requested_at < (SELECT max(d.horizon) FROM retentions d WHERE d.tenant_id = ?1)
ORDER BY c.action_id LIMIT 1;

-- Old facts, with whether an action about their subject or a linked one needs them.
-- name: OldFacts
WITH page AS MATERIALIZED (
  SELECT f.rowid AS id, f.subject_id FROM facts f
  WHERE f.tenant_id = ?1 AND f.subject_id >= ?3 AND (f.subject_id > ?3 OR f.rowid > ?4) AND f.occurred_at < ?2
  ORDER BY f.subject_id, f.rowid LIMIT ?5
), subjects AS (
  SELECT DISTINCT p.subject_id FROM page p
), near AS (
  SELECT s.subject_id, s.subject_id AS claimed FROM subjects s
  UNION ALL
  SELECT s.subject_id, l.linked_subject_id FROM subjects s CROSS JOIN subject_links l ON l.tenant_id = ?1 AND l.subject_id = s.subject_id
), awaiting AS MATERIALIZED (
  SELECT c.contract_id, c.requested_at FROM due d CROSS JOIN claims c ON c.tenant_id = ?1 AND c.claim_id = d.claim_id
  WHERE d.tenant_id = ?1 AND c.requested_at < ?2
), needed AS MATERIALIZED (
  SELECT DISTINCT n.subject_id FROM near n CROSS JOIN claims c ON c.tenant_id = ?1 AND c.subject_id = n.claimed
  WHERE c.requested_at >= ?2 - ?6 OR c.latest_status IS NOT 'settled'
    OR EXISTS (SELECT 1 FROM due d WHERE d.tenant_id = ?1 AND d.claim_id = c.claim_id)
    OR EXISTS (SELECT 1 FROM contract_reversals r WHERE r.contract_id = c.contract_id AND r.version = c.contract_version
      AND c.requested_at + r.within_seconds >= ?2 - ?6)
    OR EXISTS (SELECT 1 FROM awaiting a WHERE a.contract_id = c.contract_id AND a.requested_at BETWEEN c.requested_at - ?6 AND c.requested_at + ?6)
)
SELECT p.id, p.subject_id, p.subject_id IN (SELECT n.subject_id FROM needed n) FROM page p ORDER BY p.subject_id, p.id;

-- name: DropFacts
DELETE FROM facts WHERE tenant_id = ?1 AND rowid IN (SELECT value FROM json_each(?2));

-- Runs that are old and still have their report, with whether it is needed.
-- name: OldReports
SELECT r.seq, c.requested_at >= ?2 OR c.latest_status IS NOT 'settled'
    OR EXISTS (SELECT 1 FROM due d WHERE d.tenant_id = ?1 AND d.claim_id = r.claim_id)
    OR r.seq IN (SELECT o.run_seq FROM outbox o WHERE o.tenant_id = ?1)
FROM runs r CROSS JOIN claims c ON c.tenant_id = ?1 AND c.claim_id = r.claim_id
WHERE r.tenant_id = ?1 AND r.seq > ?3 AND r.computed_at < ?2 AND r.report IS NOT ?5
ORDER BY r.seq LIMIT ?4;

-- name: DropReports
UPDATE runs SET report = ?3 WHERE tenant_id = ?1 AND seq IN (SELECT value FROM json_each(?2));
