-- What a run says, and what the facts contained that its verdicts name, is hashed
-- and chained, so that a change is found (countersign log verify). Runs of before
-- have no hash: NULL.

-- +goose Up

ALTER TABLE runs ADD COLUMN evidence_hashes BLOB;
ALTER TABLE runs ADD COLUMN report_hash BLOB;
ALTER TABLE runs ADD COLUMN run_hash BLOB;
ALTER TABLE chain_heads ADD COLUMN run_hash BLOB;

DROP TRIGGER runs_no_update;
-- +goose StatementBegin
CREATE TRIGGER runs_no_update BEFORE UPDATE ON runs WHEN NOT EXISTS (SELECT 1 FROM dropping)
  OR (NEW.tenant_id, NEW.seq, NEW.run_id, NEW.claim_id, NEW.contract_id, NEW.contract_version, NEW.computed_at, NEW.triggered_by,
    NEW.status, NEW.headline, NEW.outcome_seq, NEW.next_check_at, NEW.events, NEW.previous_seq, NEW.changed,
    NEW.evidence_hashes, NEW.report_hash, NEW.run_hash)
  IS NOT (OLD.tenant_id, OLD.seq, OLD.run_id, OLD.claim_id, OLD.contract_id, OLD.contract_version, OLD.computed_at, OLD.triggered_by,
    OLD.status, OLD.headline, OLD.outcome_seq, OLD.next_check_at, OLD.events, OLD.previous_seq, OLD.changed,
    OLD.evidence_hashes, OLD.report_hash, OLD.run_hash)
BEGIN SELECT RAISE(ABORT, 'runs are append-only'); END;
-- +goose StatementEnd

-- A program of before, which is still running, is refused: behind a run without a
-- hash nobody could tell whether the hash was taken away.
-- +goose StatementBegin
CREATE TRIGGER runs_hashed BEFORE INSERT ON runs WHEN NEW.run_hash IS NULL
BEGIN SELECT RAISE(ABORT, 'a run without a hash is of an earlier version: end that program'); END;
-- +goose StatementEnd
