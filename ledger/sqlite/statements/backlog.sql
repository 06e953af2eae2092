-- Looks across tenants.
-- name: Backlog
SELECT (SELECT count(*) FROM outbox o), (SELECT coalesce(min(o.created_at), 0) FROM outbox o),
  (SELECT count(*) FROM due d WHERE d.parked_at IS NULL AND d.due_at <= ?1),
  (SELECT count(*) FROM due d WHERE d.parked_at IS NULL),
  (SELECT count(*) FROM due d WHERE d.parked_at IS NOT NULL),
  (SELECT count(*) FROM webhook_deliveries w WHERE w.state = 'waiting'),
  (SELECT count(*) FROM webhook_deliveries w WHERE w.state = 'dead');

-- Looks across tenants.
-- name: SourceLags
SELECT s.source, min(s.watermark) FROM sources s WHERE s.watermark IS NOT NULL GROUP BY s.source ORDER BY min(s.watermark), s.source LIMIT ?1;

-- Looks across tenants, at the facts that came last: no index is kept for times.
-- name: CountOrphans
SELECT f.source, count(*) FROM facts f NOT INDEXED
WHERE f.rowid > (SELECT coalesce(max(rowid), 0) FROM facts) - 200000 AND f.occurred_at >= ?2 AND f.occurred_at < ?3
  AND EXISTS (SELECT 1 FROM jsonb_each(?1) e WHERE e.value ->> 1 = f.fact_type AND (e.value ->> 0 IS NULL OR e.value ->> 0 = f.source))
  AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.tenant_id = f.tenant_id AND c.subject_id = f.subject_id)
  AND NOT EXISTS (
    SELECT 1 FROM subject_links l CROSS JOIN claims c ON c.tenant_id = f.tenant_id AND c.subject_id = l.linked_subject_id
    WHERE l.tenant_id = f.tenant_id AND l.subject_id = f.subject_id)
GROUP BY f.source ORDER BY count(*) DESC, f.source LIMIT ?4;
