-- Across tenants.
-- name: Backlog
SELECT (SELECT count(*) FROM outbox o), (SELECT coalesce(min(o.created_at), 0) FROM outbox o),
  (SELECT count(*) FROM due d WHERE d.parked_at IS NULL AND d.due_at <= $1),
  (SELECT count(*) FROM due d WHERE d.parked_at IS NULL),
  (SELECT count(*) FROM due d WHERE d.parked_at IS NOT NULL),
  (SELECT count(*) FROM webhook_deliveries w WHERE w.state = 'waiting'),
  (SELECT count(*) FROM webhook_deliveries w WHERE w.state = 'dead');

-- Across tenants.
-- name: SourceLags
SELECT s.source, min(s.watermark) FROM sources s WHERE s.watermark IS NOT NULL GROUP BY s.source ORDER BY min(s.watermark), s.source LIMIT $1;

-- Across tenants.
-- name: CountOrphans
SELECT f.source, count(*) FROM facts f
WHERE f.occurred_at >= $3 AND f.occurred_at < $4
  AND EXISTS (SELECT FROM unnest($1::text[], $2::text[]) AS e(source, fact_type)
    WHERE e.fact_type = f.fact_type AND (e.source = '' OR e.source = f.source))
  AND NOT EXISTS (SELECT FROM claims c WHERE c.tenant_id = f.tenant_id AND c.subject_id = f.subject_id)
  AND NOT EXISTS (SELECT FROM subject_links l JOIN claims c ON c.tenant_id = l.tenant_id AND c.subject_id = l.linked_subject_id
    WHERE l.tenant_id = f.tenant_id AND l.subject_id = f.subject_id)
GROUP BY f.source ORDER BY count(*) DESC, f.source LIMIT $5;
