-- Retention removes facts and the reports of runs. Runs, verdicts and the chain
-- stay, so that its role loses the right to remove them.

-- +goose Up

-- What was removed: everything older than a horizon that no action needed.
CREATE TABLE retentions (
  tenant_id  text COLLATE "C" NOT NULL,
  horizon    bigint NOT NULL,
  dropped_at bigint NOT NULL,
  facts      bigint NOT NULL,
  reports    bigint NOT NULL,
  PRIMARY KEY (tenant_id, horizon)
);

-- +goose StatementBegin
DO $$
DECLARE
  role text;
BEGIN
  FOREACH role IN ARRAY ARRAY['countersign_record', 'countersign_evidence', 'countersign_verify', 'countersign_read', 'countersign_retention'] LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
      EXECUTE format('GRANT SELECT ON retentions TO %I', role);
    END IF;
  END LOOP;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign_retention') THEN
    REVOKE DELETE ON verdicts, runs, trace_contexts FROM countersign_retention;
    GRANT UPDATE (report) ON runs TO countersign_retention;
    GRANT INSERT, UPDATE ON retentions TO countersign_retention;
    GRANT SELECT ON contracts, contract_reversals, subject_links, outbox TO countersign_retention;
  END IF;
END
$$;
-- +goose StatementEnd
