-- What was done to keys and with them. What is the same on one day is one row
-- that counts; the secret is nowhere in it.

-- +goose Up

CREATE TABLE key_events (
  tenant_id TEXT NOT NULL,
  event_id  TEXT NOT NULL,
  kind      TEXT NOT NULL,
  key_id    TEXT NOT NULL,
  prefix    TEXT NOT NULL,
  route     TEXT NOT NULL,
  status    TEXT NOT NULL,
  remote    TEXT NOT NULL,
  detail    TEXT NOT NULL,
  first_at  INTEGER NOT NULL,
  last_at   INTEGER NOT NULL,
  times     INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, event_id)
) STRICT;
CREATE INDEX key_events_first ON key_events (tenant_id, first_at, event_id);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('key_events', 'sqlite_autoindex_key_events_1', '10000 5000 1'),
  ('key_events', 'key_events_first', '10000 5000 2 1');
