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
