-- Work that was parked, so that who reads events learns of it once, whenever it
-- reads. Its place is after the run that the head of the chain named when it
-- was parked.

-- +goose Up

-- Append-only.
CREATE TABLE parkings (
  tenant_id TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  n         INTEGER NOT NULL,
  claim_id  TEXT NOT NULL,
  parked_at INTEGER NOT NULL,
  error     TEXT NOT NULL,
  PRIMARY KEY (tenant_id, seq, n)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER parkings_no_update BEFORE UPDATE ON parkings BEGIN SELECT RAISE(ABORT, 'parkings are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER parkings_no_delete BEFORE DELETE ON parkings BEGIN SELECT RAISE(ABORT, 'parkings are append-only'); END;
-- +goose StatementEnd
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('parkings', 'parkings', '1000 500 10 1');
