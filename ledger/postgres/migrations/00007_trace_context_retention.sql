-- Trace contexts grow with the agents' telemetry: retention drops those that no
-- action can need any more.

-- +goose Up

-- +goose StatementBegin
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign_retention') THEN
    GRANT SELECT, DELETE ON trace_contexts TO countersign_retention;
  END IF;
END
$$;
-- +goose StatementEnd
