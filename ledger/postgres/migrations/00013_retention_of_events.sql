-- Retention also takes deliveries that nobody sends any more, and the events of
-- work that was parked long ago.

-- +goose Up

-- +goose StatementBegin
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign_retention') THEN
    GRANT SELECT, DELETE ON webhook_deliveries, parkings TO countersign_retention;
  END IF;
END
$$;
-- +goose StatementEnd
