-- name: AddEvents
INSERT INTO outbox (tenant_id, id, kind, claim_id, run_seq, created_at)
SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM jsonb_each(?2);

-- Looks across tenants.
-- name: LeaseOutbox
UPDATE outbox SET lease_owner = ?1, lease_until = ?3, attempts = attempts + 1
WHERE (tenant_id, id) IN (
  SELECT o.tenant_id, o.id FROM outbox o
  WHERE (o.lease_owner IS NULL OR o.lease_until <= ?2) AND (o.retry_at IS NULL OR o.retry_at <= ?2)
  ORDER BY o.created_at, o.tenant_id, o.id LIMIT ?4)
RETURNING tenant_id, id, kind, claim_id, run_seq, created_at, attempts;

-- Looks across tenants, for the events of one lease.
-- name: RunsOfEvents
SELECT r.* FROM jsonb_each(?1) j CROSS JOIN stored_runs r ON r.tenant_id = j.value ->> 0 AND r.seq = j.value ->> 1;

-- Looks across tenants, for the events of one lease.
-- name: ActionsOfEvents
SELECT a.* FROM (SELECT DISTINCT value ->> 0 AS tenant_id, value ->> 1 AS claim_id FROM jsonb_each(?1)) j
CROSS JOIN stored_actions a ON a.tenant_id = j.tenant_id AND a.claim_id = j.claim_id;

-- Looks across tenants, for the events of one lease.
-- name: RemoveEvents
DELETE FROM outbox WHERE lease_owner = ?1 AND (tenant_id, id) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(?2));

-- Looks across tenants, for the events of one lease.
-- name: RetryEvents
UPDATE outbox SET lease_owner = NULL, lease_until = NULL, retry_at = j.value ->> 2, last_error = j.value ->> 3
FROM jsonb_each(?2) j
WHERE outbox.lease_owner = ?1 AND outbox.tenant_id = j.value ->> 0 AND outbox.id = j.value ->> 1;
