-- Evidence that a collector could not write, kept apart with the reason. It is no
-- evidence: nothing that judges reads it.

-- +goose Up

CREATE TABLE rejected_facts (
  tenant_id   text COLLATE "C" NOT NULL,
  rejected_id text COLLATE "C" NOT NULL,
  kind        text COLLATE "C" NOT NULL,
  source      text COLLATE "C" NOT NULL,
  connection  text COLLATE "C" NOT NULL,
  reason      text COLLATE "C" NOT NULL,
  error       text COLLATE "C" NOT NULL,
  raw_ref     text COLLATE "C" NOT NULL,
  subject_id  text COLLATE "C" NOT NULL,
  item        text COLLATE "C" NOT NULL,
  received_at bigint NOT NULL,
  last_at     bigint NOT NULL,
  times       bigint NOT NULL,
  PRIMARY KEY (tenant_id, rejected_id)
);
CREATE INDEX rejected_facts_last ON rejected_facts (tenant_id, last_at, rejected_id);

-- +goose StatementBegin
DO $$
DECLARE
  item record;
BEGIN
  FOR item IN SELECT * FROM (VALUES
    ('countersign_evidence', 'SELECT, INSERT ON rejected_facts'),
    ('countersign_evidence', 'UPDATE (error, last_at, times) ON rejected_facts'),
    ('countersign_verify', 'SELECT ON rejected_facts'),
    ('countersign_read', 'SELECT ON rejected_facts'),
    ('countersign_retention', 'SELECT, DELETE ON rejected_facts')
  ) AS grants (grantee, privilege) LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = item.grantee) THEN
      EXECUTE format('GRANT %s TO %I', item.privilege, item.grantee);
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd
