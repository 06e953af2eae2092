-- name: StartWebhook
INSERT INTO webhook_cursors (tenant_id, endpoint, seq, n)
SELECT ?1, ?2, coalesce(h.seq, 0), CASE WHEN h.seq IS NULL THEN 0
  ELSE coalesce((SELECT max(k.n) FROM parkings k WHERE k.tenant_id = ?1 AND k.seq = h.seq), 15) END
FROM (SELECT 1) AS one LEFT JOIN chain_heads h ON h.tenant_id = ?1
WHERE true
ON CONFLICT (tenant_id, endpoint) DO NOTHING;

-- name: LockWebhook
SELECT w.seq, w.n FROM webhook_cursors w WHERE w.tenant_id = ?1 AND w.endpoint = ?2;

-- name: MoveWebhook
UPDATE webhook_cursors SET seq = ?3, n = ?4 WHERE tenant_id = ?1 AND endpoint = ?2;

-- name: AddDeliveries
INSERT INTO webhook_deliveries (tenant_id, delivery_id, endpoint, seq, n, kind, payload, created_at, state, due_at)
SELECT ?1, value ->> 0, ?2, value ->> 1, value ->> 2, value ->> 3, value ->> 4, ?3, 'waiting', ?3 FROM jsonb_each(?4)
WHERE true
ON CONFLICT (tenant_id, delivery_id) DO NOTHING;

-- name: LeaseDeliveries
UPDATE webhook_deliveries SET lease_owner = ?4, lease_until = ?5, attempts = attempts + 1
WHERE tenant_id = ?1 AND delivery_id IN (
  SELECT w.delivery_id FROM webhook_deliveries w
  WHERE w.tenant_id = ?1 AND w.endpoint = ?2 AND w.state = 'waiting' AND w.due_at <= ?3 AND (w.lease_until IS NULL OR w.lease_until <= ?3)
  ORDER BY w.due_at, w.seq, w.n LIMIT ?6)
RETURNING delivery_id, seq, n, kind, payload, endpoint, state, created_at, attempts, status, last_error, due_at, finished_at;

-- name: CompleteDeliveries
UPDATE webhook_deliveries
SET state = j.value ->> 1, due_at = j.value ->> 2, status = j.value ->> 3, last_error = j.value ->> 4, lease_owner = NULL, lease_until = NULL,
  finished_at = CASE WHEN j.value ->> 1 = 'waiting' THEN NULL ELSE ?3 END
FROM jsonb_each(?4) j
WHERE webhook_deliveries.tenant_id = ?1 AND webhook_deliveries.lease_owner = ?2 AND webhook_deliveries.delivery_id = j.value ->> 0;

-- name: DeadLetters
SELECT d.delivery_id, d.seq, d.n, d.kind, d.payload, d.endpoint, d.state, d.created_at, d.attempts, d.status, d.last_error, d.due_at, d.finished_at
FROM webhook_deliveries d
WHERE d.tenant_id = ?1 AND d.state = 'dead' AND (d.finished_at, d.delivery_id) < (?2, ?3) AND (?4 = '' OR d.endpoint = ?4)
ORDER BY d.finished_at DESC, d.delivery_id DESC
LIMIT ?5;

-- What is being sent right now goes on.
-- name: ReplayDeliveries
UPDATE webhook_deliveries SET state = 'waiting', due_at = ?2, attempts = 0, finished_at = NULL
WHERE tenant_id = ?1 AND delivery_id IN (SELECT value FROM json_each(?3))
RETURNING delivery_id;

-- name: ExpireDeliveries
DELETE FROM webhook_deliveries
WHERE tenant_id = ?1 AND delivery_id IN (
  SELECT w.delivery_id FROM webhook_deliveries w
  WHERE w.tenant_id = ?1 AND w.endpoint = ?2 AND w.state = ?3 AND w.finished_at < ?4
  ORDER BY w.finished_at LIMIT ?5);

-- name: OldDeliveries
SELECT w.delivery_id FROM webhook_deliveries w
WHERE w.tenant_id = ?1 AND w.delivery_id > ?3 AND coalesce(w.finished_at, w.due_at) < ?2
ORDER BY w.delivery_id LIMIT ?4;

-- name: DropDeliveries
DELETE FROM webhook_deliveries
WHERE tenant_id = ?1 AND delivery_id IN (SELECT value FROM json_each(?2)) AND coalesce(finished_at, due_at) < ?3;
