-- name: CountMigrationTables
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'countersign_migrations';

-- name: NewestApplied
SELECT coalesce(max(version_id), 0) FROM countersign_migrations WHERE is_applied;
