-- Retention: facts, and the reports of runs, may go inside a transaction that
-- declares it by a row in dropping and takes the row away before it commits.
-- SQLite has one writer at a time, so that nobody else meets the row.

-- +goose Up

-- What was removed: everything older than a horizon that no action needed.
CREATE TABLE retentions (
  tenant_id  TEXT NOT NULL,
  horizon    INTEGER NOT NULL,
  dropped_at INTEGER NOT NULL,
  facts      INTEGER NOT NULL,
  reports    INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, horizon)
) STRICT, WITHOUT ROWID;

CREATE TABLE dropping (declared_at INTEGER NOT NULL) STRICT;

DROP TRIGGER facts_no_delete;
DROP TRIGGER runs_no_update;
-- +goose StatementBegin
CREATE TRIGGER facts_no_delete BEFORE DELETE ON facts WHEN NOT EXISTS (SELECT 1 FROM dropping)
BEGIN SELECT RAISE(ABORT, 'facts are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER runs_no_update BEFORE UPDATE ON runs WHEN NOT EXISTS (SELECT 1 FROM dropping)
  OR (NEW.tenant_id, NEW.seq, NEW.run_id, NEW.claim_id, NEW.contract_id, NEW.contract_version, NEW.computed_at, NEW.triggered_by,
    NEW.status, NEW.headline, NEW.outcome_seq, NEW.next_check_at, NEW.events, NEW.previous_seq, NEW.changed)
  IS NOT (OLD.tenant_id, OLD.seq, OLD.run_id, OLD.claim_id, OLD.contract_id, OLD.contract_version, OLD.computed_at, OLD.triggered_by,
    OLD.status, OLD.headline, OLD.outcome_seq, OLD.next_check_at, OLD.events, OLD.previous_seq, OLD.changed)
BEGIN SELECT RAISE(ABORT, 'runs are append-only'); END;
-- +goose StatementEnd
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('retentions', 'retentions', '100 50 1');
