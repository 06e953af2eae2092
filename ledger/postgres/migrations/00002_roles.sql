-- Least privilege: one group role per job. An operator grants one or more of
-- them to the login role of a program:
--
--   countersign_record     the recorder side of the collector
--   countersign_evidence   the evidence side of the collector
--   countersign_verify     the sidecar; with record and evidence where it serves their HTTP paths too
--   countersign_read       whoever only looks
--   countersign_retention  the only one that may remove facts and verdicts
--
-- What agents say of themselves becomes facts too (source otel), and the recorder
-- side writes those; it does so through two functions that write that source and
-- no other, so that its credential cannot make evidence of a system of record.
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
  EXECUTE format($create$
    CREATE FUNCTION countersign_ingest_agent_facts(tenant text, refs text[], types text[], subjects text[], kinds text[],
      times bigint[], attributes text[], hashes bytea[], connection text, at bigint) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = %1$I, pg_temp AS $body$
      WITH stored AS (
        INSERT INTO facts (tenant_id, raw_ref, source, fact_type, subject_id, subject_kind, occurred_at, attributes, content_hash, connection, ingested_at)
        SELECT tenant, n.raw_ref, 'otel', n.fact_type, n.subject_id, n.subject_kind, n.occurred_at, n.attributes::json, n.content_hash, connection, at
        FROM unnest(refs, types, subjects, kinds, times, attributes, hashes)
          AS n(raw_ref, fact_type, subject_id, subject_kind, occurred_at, attributes, content_hash)
        ORDER BY n.raw_ref COLLATE "C"
        ON CONFLICT (tenant_id, raw_ref) DO NOTHING
        RETURNING 1
      )
      SELECT count(*) FROM stored
    $body$;
    CREATE FUNCTION countersign_meet_agent(tenant text, connection text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = %1$I, pg_temp AS $body$
      INSERT INTO sources AS s (tenant_id, source, connection, trust, delivered)
      SELECT tenant, 'otel', meet.connection, 1, 1
      FROM (SELECT countersign_meet_agent.connection) AS meet
      WHERE NOT EXISTS (SELECT FROM sources k
        WHERE k.tenant_id = tenant AND k.source = 'otel' AND k.connection = meet.connection AND k.delivered = 1 AND k.trust = 1)
      ON CONFLICT (tenant_id, source, connection) DO UPDATE SET trust = 1, delivered = 1
    $body$;
    REVOKE EXECUTE ON FUNCTION countersign_ingest_agent_facts, countersign_meet_agent FROM PUBLIC
  $create$, current_schema());

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
    ('countersign_record', 'SELECT (tenant_id, raw_ref, content_hash, source, fact_type, subject_id, occurred_at) ON facts'),
    ('countersign_record', 'SELECT ON subject_links, sources'),
    ('countersign_record', 'EXECUTE ON FUNCTION countersign_ingest_agent_facts, countersign_meet_agent'),
    ('countersign_record', 'INSERT ON tenants, claims, trace_contexts, due'),
    ('countersign_record', 'UPDATE (workflow_id, agent_id, subject_id, requested_at, params, channel, trace_id, span_id, session_id, reference_id, tool, reported_outcome, started_nanos, agent_completed, session_completed) ON claims'),
    ('countersign_record', 'UPDATE ON trace_contexts, due'),

    ('countersign_evidence', 'SELECT ON tenants, contracts, contract_reversals, contract_sources, claims, facts, subject_links, sources, due, countersign_migrations'),
    ('countersign_evidence', 'EXECUTE ON FUNCTION countersign_ingest_agent_facts, countersign_meet_agent'),
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
