-- Evidence that a collector could not write, kept apart with the reason. It is no
-- evidence: nothing that judges reads it.

-- +goose Up

CREATE TABLE rejected_facts (
  tenant_id   TEXT NOT NULL,
  rejected_id TEXT NOT NULL,
  kind        TEXT NOT NULL,
  source      TEXT NOT NULL,
  connection  TEXT NOT NULL,
  reason      TEXT NOT NULL,
  error       TEXT NOT NULL,
  raw_ref     TEXT NOT NULL,
  subject_id  TEXT NOT NULL,
  item        TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  last_at     INTEGER NOT NULL,
  times       INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, rejected_id)
) STRICT;
CREATE INDEX rejected_facts_last ON rejected_facts (tenant_id, last_at, rejected_id);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('rejected_facts', 'sqlite_autoindex_rejected_facts_1', '10000 5000 1'),
  ('rejected_facts', 'rejected_facts_last', '10000 5000 2 1');
