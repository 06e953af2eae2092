-- name: AddEvents
INSERT INTO outbox (tenant_id, kind, claim_id, run_seq, created_at)
SELECT $1, n.kind, n.claim_id, n.run_seq, n.created_at
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS n(kind, claim_id, run_seq, created_at, place)
ORDER BY n.place;

-- Across tenants: candidates, leased afterwards tenant by tenant.
-- name: WaitingEvents
SELECT o.tenant_id, o.id
FROM outbox o
WHERE (o.lease_until IS NULL OR o.lease_until <= $1) AND (o.retry_at IS NULL OR o.retry_at <= $1)
ORDER BY o.created_at, o.tenant_id, o.id
LIMIT $2;

-- name: LeaseOutbox
UPDATE outbox o
SET lease_owner = $3, lease_until = $4, attempts = o.attempts + 1
WHERE o.tenant_id = $1 AND o.id = ANY (ARRAY (
  SELECT w.id FROM outbox w
  WHERE w.tenant_id = $1 AND w.id = ANY ($5::bigint[])
    AND (w.lease_until IS NULL OR w.lease_until <= $2) AND (w.retry_at IS NULL OR w.retry_at <= $2)
  ORDER BY w.id
  FOR UPDATE SKIP LOCKED))
RETURNING o.tenant_id, o.id, o.kind, o.claim_id, o.run_seq, o.created_at, o.attempts;

-- name: RemoveEvents
DELETE FROM outbox o WHERE o.tenant_id = $1 AND o.lease_owner = $2 AND o.id = ANY ($3::bigint[]);

-- name: RetryEvents
UPDATE outbox o
SET retry_at = n.retry_at, last_error = n.error, lease_owner = NULL, lease_until = NULL
FROM unnest($3::bigint[], $4::bigint[], $5::text[]) AS n(id, retry_at, error)
WHERE o.tenant_id = $1 AND o.lease_owner = $2 AND o.id = n.id;
