-- name: NoteKeyEvents
INSERT INTO key_events AS e (tenant_id, event_id, kind, key_id, prefix, route, status, remote, detail, first_at, last_at, times)
SELECT $1, n.event_id, n.kind, n.key_id, n.prefix, n.route, n.status, n.remote, n.detail, n.first_at, n.last_at, n.times
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[])
  AS n(event_id, kind, key_id, prefix, route, status, remote, detail, first_at, last_at, times)
ORDER BY n.event_id
ON CONFLICT (tenant_id, event_id) DO UPDATE
SET first_at = least(e.first_at, excluded.first_at), last_at = greatest(e.last_at, excluded.last_at), times = e.times + excluded.times;

-- What lasted into the time that is asked for began at most a day before it.
-- name: KeyEvents
SELECT e.event_id, e.kind, e.key_id, e.prefix, e.route, e.status, e.remote, e.detail, e.first_at, e.last_at, e.times
FROM key_events e
WHERE e.tenant_id = $1 AND (e.first_at, e.event_id) < ($2, $3)
  AND e.first_at >= $4 AND e.last_at >= $5 AND e.first_at < $6
  AND ($7 = '' OR e.key_id = $7 OR e.prefix = $7) AND ($8 = '' OR e.kind = $8)
ORDER BY e.first_at DESC, e.event_id DESC
LIMIT $9;

-- What was done to a key stays.
-- name: OldKeyEvents
SELECT e.first_at, e.event_id
FROM key_events e
WHERE e.tenant_id = $1 AND e.first_at < $2 AND e.last_at < $2 AND e.kind IN ('used', 'refused', 'expired_use') AND (e.first_at, e.event_id) > ($3, $4)
ORDER BY e.first_at, e.event_id
LIMIT $5;

-- name: DropKeyEvents
DELETE FROM key_events e WHERE e.tenant_id = $1 AND e.event_id = ANY ($2::text[]) AND e.last_at < $3;
