-- Webhooks. An endpoint's events are enqueued behind its place in the sequence
-- of events, in the transaction that moves it, so that each is enqueued once.

-- +goose Up

CREATE TABLE webhook_cursors (
  tenant_id TEXT NOT NULL,
  endpoint  TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  n         INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, endpoint)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_deliveries (
  tenant_id   TEXT NOT NULL,
  delivery_id TEXT NOT NULL,
  endpoint    TEXT NOT NULL,
  seq         INTEGER NOT NULL,
  n           INTEGER NOT NULL,
  kind        TEXT NOT NULL,
  payload     TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  state       TEXT NOT NULL,
  due_at      INTEGER NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0,
  lease_owner TEXT,
  lease_until INTEGER,
  status      INTEGER,
  last_error  TEXT,
  finished_at INTEGER,
  PRIMARY KEY (tenant_id, delivery_id)
) STRICT;
CREATE INDEX webhook_waiting ON webhook_deliveries (tenant_id, endpoint, due_at, seq, n) WHERE state = 'waiting';
CREATE INDEX webhook_dead ON webhook_deliveries (tenant_id, finished_at, delivery_id) WHERE state = 'dead';
CREATE INDEX webhook_finished ON webhook_deliveries (tenant_id, endpoint, state, finished_at) WHERE finished_at IS NOT NULL;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('webhook_cursors', 'webhook_cursors', '10 5 1'),
  ('webhook_deliveries', 'sqlite_autoindex_webhook_deliveries_1', '100000 50000 1'),
  ('webhook_deliveries', 'webhook_waiting', '1000 500 100 10 1 1'),
  ('webhook_deliveries', 'webhook_dead', '100 50 2 1'),
  ('webhook_deliveries', 'webhook_finished', '100000 50000 10000 5000 10');
