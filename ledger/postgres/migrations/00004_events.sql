-- Work that was parked, so that who reads events learns of it once, whenever it
-- reads. Its place is after the run that the head of the chain named when it
-- was parked: the head is locked for both, so that places are committed in order.

-- +goose Up

-- Append-only.
CREATE TABLE parkings (
  tenant_id text COLLATE "C" NOT NULL,
  seq       bigint NOT NULL,
  n         integer NOT NULL,
  claim_id  text COLLATE "C" NOT NULL,
  parked_at bigint NOT NULL,
  error     text NOT NULL,
  PRIMARY KEY (tenant_id, seq, n)
);

-- +goose StatementBegin
DO $$
DECLARE
  item record;
BEGIN
  FOR item IN SELECT * FROM (VALUES
    ('countersign_verify', 'SELECT, INSERT'),
    ('countersign_read', 'SELECT')
  ) AS grants (grantee, privilege) LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = item.grantee) THEN
      EXECUTE format('GRANT %s ON parkings TO %I', item.privilege, item.grantee);
    END IF;
  END LOOP;
  EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON parkings FROM %I', current_user);
END
$$;
-- +goose StatementEnd
