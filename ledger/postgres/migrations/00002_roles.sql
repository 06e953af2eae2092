-- Least privilege: one group role per job. An operator grants one or more of
-- them to the login role of a program:
--
--   countersign_record     the recorder side of the collector
--   countersign_evidence   the evidence side of the collector
--   countersign_verify     the sidecar; with record and evidence where it serves their HTTP paths too
--   countersign_read       whoever only looks
--   countersign_retention  the only one that may remove facts and verdicts
--
-- Roles belong to the cluster and are made only where the migrating role may;
-- where they exist, they are granted what they need. Facts, runs and verdicts are
-- append-only for everybody else, the owner of the tables included.

-- +goose Up

-- +goose StatementBegin
DO $$
DECLARE
  role text;
  item record;
BEGIN
  FOREACH role IN ARRAY ARRAY['countersign_record', 'countersign_evidence', 'countersign_verify', 'countersign_read', 'countersign_retention'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', role);
      EXCEPTION
        WHEN insufficient_privilege THEN
          RAISE NOTICE 'role % does not exist and % may not create it', role, current_user;
        WHEN duplicate_object OR unique_violation THEN
          NULL; -- the migration of another database was faster
      END;
    END IF;
  END LOOP;

  FOR item IN SELECT * FROM (VALUES
    ('countersign_record', 'SELECT ON tenants, contracts, contract_reversals, contract_sources, claims, trace_contexts, due, countersign_migrations'),
    ('countersign_record', 'INSERT ON tenants, claims, trace_contexts, due'),
    ('countersign_record', 'UPDATE (workflow_id, agent_id, subject_id, requested_at, params, channel, trace_id, span_id, session_id, reference_id, tool, reported_outcome, started_nanos, agent_completed, session_completed) ON claims'),
    ('countersign_record', 'UPDATE ON trace_contexts, due'),

    ('countersign_evidence', 'SELECT ON tenants, contracts, contract_reversals, contract_sources, claims, facts, subject_links, sources, due, countersign_migrations'),
    ('countersign_evidence', 'INSERT ON tenants, facts, subject_links, sources, due'),
    ('countersign_evidence', 'UPDATE ON sources, due'),

    ('countersign_verify', 'SELECT ON tenants, contracts, contract_reversals, contract_sources, claims, trace_contexts, facts, subject_links, sources, due, runs, verdicts, chain_heads, outbox, api_keys, countersign_migrations'),
    ('countersign_verify', 'INSERT ON tenants, contracts, contract_reversals, contract_sources, due, runs, verdicts, chain_heads, outbox, api_keys'),
    ('countersign_verify', 'UPDATE (latest_seq, latest_status, latest_outcome, latest_policy, settled_policy) ON claims'),
    ('countersign_verify', 'UPDATE ON due, chain_heads, outbox'),
    ('countersign_verify', 'UPDATE (revoked_at, last_used_at) ON api_keys'),
    ('countersign_verify', 'DELETE ON due, outbox'),

    ('countersign_read', 'SELECT ON tenants, contracts, contract_reversals, contract_sources, claims, trace_contexts, facts, subject_links, sources, due, runs, verdicts, chain_heads, outbox, countersign_migrations'),

    ('countersign_retention', 'SELECT, DELETE ON facts, verdicts, runs, trace_contexts'),
    ('countersign_retention', 'SELECT ON tenants, claims, due, chain_heads, countersign_migrations')
  ) AS grants (grantee, privilege) LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = item.grantee) THEN
      EXECUTE format('GRANT %s TO %I', item.privilege, item.grantee);
    END IF;
  END LOOP;

  EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON facts, runs, verdicts FROM %I', current_user);
END
$$;
-- +goose StatementEnd
