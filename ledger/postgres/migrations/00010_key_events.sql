-- What was done to keys and with them. What is the same on one day is one row
-- that counts; the secret is nowhere in it.

-- +goose Up

CREATE TABLE key_events (
  tenant_id text COLLATE "C" NOT NULL,
  event_id  text COLLATE "C" NOT NULL,
  kind      text COLLATE "C" NOT NULL,
  key_id    text COLLATE "C" NOT NULL,
  prefix    text COLLATE "C" NOT NULL,
  route     text COLLATE "C" NOT NULL,
  status    text COLLATE "C" NOT NULL,
  remote    text COLLATE "C" NOT NULL,
  detail    text COLLATE "C" NOT NULL,
  first_at  bigint NOT NULL,
  last_at   bigint NOT NULL,
  times     bigint NOT NULL,
  PRIMARY KEY (tenant_id, event_id)
) WITH (fillfactor = 80);
CREATE INDEX key_events_first ON key_events (tenant_id, first_at, event_id);

-- +goose StatementBegin
DO $$
DECLARE
  item record;
BEGIN
  FOR item IN SELECT * FROM (VALUES
    ('countersign_verify', 'SELECT, INSERT ON key_events'),
    ('countersign_verify', 'UPDATE (first_at, last_at, times) ON key_events'),
    ('countersign_read', 'SELECT ON key_events'),
    ('countersign_retention', 'SELECT, DELETE ON key_events')
  ) AS grants (grantee, privilege) LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = item.grantee) THEN
      EXECUTE format('GRANT %s TO %I', item.privilege, item.grantee);
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd
