-- name: NewestApplied
SELECT coalesce(max(version_id), 0) FROM countersign_migrations WHERE is_applied;
