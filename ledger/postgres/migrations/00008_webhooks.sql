-- Webhooks. An endpoint's events are enqueued behind its place in the sequence
-- of events, in the transaction that moves it, so that each is enqueued once.

-- +goose Up

CREATE TABLE webhook_cursors (
  tenant_id text COLLATE "C" NOT NULL,
  endpoint  text COLLATE "C" NOT NULL,
  seq       bigint NOT NULL,
  n         integer NOT NULL,
  PRIMARY KEY (tenant_id, endpoint)
) WITH (fillfactor = 10);

CREATE TABLE webhook_deliveries (
  tenant_id   text COLLATE "C" NOT NULL,
  delivery_id text COLLATE "C" NOT NULL,
  endpoint    text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  n           integer NOT NULL,
  kind        text COLLATE "C" NOT NULL,
  payload     text NOT NULL,
  created_at  bigint NOT NULL,
  state       text COLLATE "C" NOT NULL,
  due_at      bigint NOT NULL,
  attempts    integer NOT NULL DEFAULT 0,
  lease_owner text COLLATE "C",
  lease_until bigint,
  status      integer,
  last_error  text,
  finished_at bigint,
  PRIMARY KEY (tenant_id, delivery_id)
) WITH (fillfactor = 80);
CREATE INDEX webhook_waiting ON webhook_deliveries (tenant_id, endpoint, due_at, seq, n) WHERE state = 'waiting';
CREATE INDEX webhook_dead ON webhook_deliveries (tenant_id, finished_at, delivery_id) WHERE state = 'dead';
CREATE INDEX webhook_finished ON webhook_deliveries (tenant_id, endpoint, state, finished_at) WHERE finished_at IS NOT NULL;

-- +goose StatementBegin
DO $$
DECLARE
  item record;
BEGIN
  FOR item IN SELECT * FROM (VALUES
    ('countersign_verify', 'SELECT, INSERT, UPDATE ON webhook_cursors, webhook_deliveries'),
    ('countersign_verify', 'DELETE ON webhook_deliveries'),
    ('countersign_read', 'SELECT ON webhook_cursors, webhook_deliveries')
  ) AS grants (grantee, privilege) LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = item.grantee) THEN
      EXECUTE format('GRANT %s TO %I', item.privilege, item.grantee);
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd
