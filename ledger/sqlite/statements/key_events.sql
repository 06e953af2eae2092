-- Looks across tenants, for the keys that were used.
-- name: NoteKeyEvents
INSERT INTO key_events (tenant_id, event_id, kind, key_id, prefix, route, status, remote, detail, first_at, last_at, times)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11
FROM jsonb_each(?1)
WHERE true
ON CONFLICT (tenant_id, event_id) DO UPDATE
SET first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at), times = times + excluded.times;

-- What lasted into the time that is asked for began at most a day before it.
-- name: KeyEvents
SELECT e.event_id, e.kind, e.key_id, e.prefix, e.route, e.status, e.remote, e.detail, e.first_at, e.last_at, e.times
FROM key_events e
WHERE e.tenant_id = ?1 AND (e.first_at, e.event_id) < (?2, ?3)
  AND e.first_at >= ?4 AND e.last_at >= ?5 AND e.first_at < ?6
  AND (?7 = '' OR e.key_id = ?7 OR e.prefix = ?7) AND (?8 = '' OR e.kind = ?8)
ORDER BY e.first_at DESC, e.event_id DESC LIMIT ?9;

-- What was done to a key stays.
-- name: OldKeyEvents
SELECT e.first_at, e.event_id FROM key_events e
WHERE e.tenant_id = ?1 AND e.first_at < ?2 AND e.last_at < ?2 AND e.kind IN ('used', 'refused', 'expired_use') AND (e.first_at, e.event_id) > (?3, ?4)
ORDER BY e.first_at, e.event_id LIMIT ?5;

-- name: DropKeyEvents
DELETE FROM key_events WHERE tenant_id = ?1 AND event_id IN (SELECT value FROM json_each(?2)) AND last_at < ?3;
