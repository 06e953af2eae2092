-- name: RejectFacts
INSERT INTO rejected_facts (tenant_id, rejected_id, kind, source, connection, reason, error, raw_ref, subject_id, item, received_at, last_at, times)
SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8, ?3, ?3, value ->> 9
FROM jsonb_each(?2)
WHERE true
ON CONFLICT (tenant_id, rejected_id) DO UPDATE
SET error = excluded.error, last_at = max(last_at, excluded.last_at), times = times + excluded.times;

-- name: RejectedFacts
SELECT r.kind, r.source, r.connection, r.reason, r.error, r.raw_ref, r.subject_id, r.item, r.received_at, r.last_at, r.times
FROM rejected_facts r
WHERE r.tenant_id = ?1 AND (?2 = '' OR r.source = ?2) AND r.last_at >= ?3
ORDER BY r.last_at DESC, r.rejected_id DESC LIMIT ?4;

-- name: CountRejected
SELECT r.source, count(*), sum(r.times), max(r.last_at) FROM rejected_facts r
WHERE r.tenant_id = ?1 AND r.last_at >= ?2
GROUP BY r.source ORDER BY r.source;

-- name: OldRejected
SELECT r.last_at, r.rejected_id FROM rejected_facts r
WHERE r.tenant_id = ?1 AND r.last_at < ?2 AND (r.last_at, r.rejected_id) > (?3, ?4)
ORDER BY r.last_at, r.rejected_id LIMIT ?5;

-- name: DropRejected
DELETE FROM rejected_facts WHERE tenant_id = ?1 AND rejected_id IN (SELECT value FROM json_each(?2)) AND last_at < ?3;
