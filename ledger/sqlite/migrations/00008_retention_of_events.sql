-- Retention also takes the events of work that was parked long ago, inside a
-- transaction that declares it.

-- +goose Up

DROP TRIGGER parkings_no_delete;
-- +goose StatementBegin
CREATE TRIGGER parkings_no_delete BEFORE DELETE ON parkings WHEN NOT EXISTS (SELECT 1 FROM dropping)
BEGIN SELECT RAISE(ABORT, 'parkings are append-only'); END;
-- +goose StatementEnd
