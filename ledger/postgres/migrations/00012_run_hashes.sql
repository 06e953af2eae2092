-- What a run says, and what the facts contained that its verdicts name, is hashed
-- and chained, so that a change is found (countersign log verify). Runs of before
-- have no hash: NULL.

-- +goose Up

ALTER TABLE runs
  ADD COLUMN evidence_hashes bytea,
  ADD COLUMN report_hash bytea,
  ADD COLUMN run_hash bytea;
ALTER TABLE chain_heads ADD COLUMN run_hash bytea;

-- A program of before, which is still running, is refused: behind a run without a
-- hash nobody could tell whether the hash was taken away.
-- +goose StatementBegin
DO $$
BEGIN
  EXECUTE format('ALTER TABLE runs ADD CONSTRAINT runs_hashed CHECK (run_hash IS NOT NULL OR computed_at <= %s) NOT VALID',
    (SELECT coalesce(max(r.computed_at), 0) FROM runs r));
END
$$;
-- +goose StatementEnd
