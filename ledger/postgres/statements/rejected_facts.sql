-- name: RejectFacts
INSERT INTO rejected_facts AS r (tenant_id, rejected_id, kind, source, connection, reason, error, raw_ref, subject_id, item, received_at, last_at, times)
SELECT $1, n.rejected_id, n.kind, n.source, n.connection, n.reason, n.error, n.raw_ref, n.subject_id, n.item, $2, $2, n.times
FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[])
  AS n(rejected_id, kind, source, connection, reason, error, raw_ref, subject_id, item, times)
ORDER BY n.rejected_id
ON CONFLICT (tenant_id, rejected_id) DO UPDATE
SET error = excluded.error, last_at = greatest(r.last_at, excluded.last_at), times = r.times + excluded.times;

-- name: RejectedFacts
SELECT r.kind, r.source, r.connection, r.reason, r.error, r.raw_ref, r.subject_id, r.item, r.received_at, r.last_at, r.times
FROM rejected_facts r
WHERE r.tenant_id = $1 AND ($2 = '' OR r.source = $2) AND r.last_at >= $3
ORDER BY r.last_at DESC, r.rejected_id DESC
LIMIT $4;

-- name: CountRejected
SELECT r.source, count(*), sum(r.times)::bigint, max(r.last_at)
FROM rejected_facts r
WHERE r.tenant_id = $1 AND r.last_at >= $2
GROUP BY r.source
ORDER BY r.source;

-- name: OldRejected
SELECT r.last_at, r.rejected_id
FROM rejected_facts r
WHERE r.tenant_id = $1 AND r.last_at < $2 AND (r.last_at, r.rejected_id) > ($3, $4)
ORDER BY r.last_at, r.rejected_id
LIMIT $5;

-- name: DropRejected
DELETE FROM rejected_facts r WHERE r.tenant_id = $1 AND r.rejected_id = ANY ($2::text[]) AND r.last_at < $3;
