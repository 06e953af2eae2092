-- What a run says, and what the facts contained that its verdicts name, is hashed
-- and chained, so that a change is found (countersign log verify). Runs of before
-- have no hash: NULL.

-- +goose Up

ALTER TABLE runs
  ADD COLUMN evidence_hashes bytea,
  ADD COLUMN report_hash bytea,
  ADD COLUMN run_hash bytea;
ALTER TABLE chain_heads ADD COLUMN run_hash bytea;
