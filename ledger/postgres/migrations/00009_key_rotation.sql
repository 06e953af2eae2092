-- Rotation lets the old secret of a key expire after a while.

-- +goose Up

-- +goose StatementBegin
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign_verify') THEN
    GRANT UPDATE (expires_at) ON api_keys TO countersign_verify;
  END IF;
END
$$;
-- +goose StatementEnd
