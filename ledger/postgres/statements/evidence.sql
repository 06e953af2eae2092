-- Which transactions that bring evidence to a tenant are under way. They hold a
-- shared advisory lock, which nobody ever waits for; 1668248942 is "coun".

-- name: AnnounceEvidence
SELECT pg_advisory_xact_lock_shared(1668248942, hashtext($1));

-- All that are under way, or those of them that still are.
-- name: EvidenceUnderWay
SELECT l.virtualtransaction
FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
  AND l.classid = 1668248942 AND l.objid = (hashtext($1)::bigint & 4294967295)::oid AND l.objsubid = 2 AND l.granted
  AND ($2::text[] IS NULL OR l.virtualtransaction = ANY ($2));
