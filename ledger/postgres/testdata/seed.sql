-- A store of four tenants of some size, the same every time, for plans: large
-- enough that an index is worth using, small enough that ANALYZE reads every row.

INSERT INTO tenants SELECT 'tenant_' || t, 0 FROM generate_series(0, 3) t;

INSERT INTO contracts
SELECT 'contract_' || k, v, md5(k || ':' || v), 'id: contract', 900, 0 FROM generate_series(0, 4) k, generate_series(1, 4) v;
INSERT INTO contract_reversals
SELECT contract_id, version, 0, 'payments', 'payout_returned', 2592000 FROM contracts;
INSERT INTO contract_sources
SELECT contract_id, version, s.source FROM contracts, (VALUES ('payments'), ('shop'), ('crm')) s(source);

INSERT INTO claims (tenant_id, claim_id, action_id, contract_id, contract_version, agent_id, subject_id, subject_kind,
  requested_at, params, compensates, trace_id, span_id, started_nanos, recorded_at, latest_seq, latest_status, latest_outcome, latest_policy)
SELECT 'tenant_' || i % 4, 'clm_' || md5(i::text), 'act_' || i, 'contract_' || i % 5, 1 + i % 4, 'agent_' || i % 7, 'order_' || i / 8, 'order',
  1790000000 + i, '{"amount":180}', CASE WHEN i % 50 = 0 THEN 'act_' || i - 4 END, md5('trace' || i / 3), md5('span' || i), i * 1000000000::bigint, 1790000000 + i,
  2 * (1 + i / 4), CASE WHEN i % 5 = 0 THEN 'pending' ELSE 'settled' END, 'VERIFIED', (ARRAY['VERIFIED', 'NOT_VERIFIED', 'UNVERIFIABLE'])[1 + i % 3]
FROM generate_series(0, 11999) i;

INSERT INTO trace_contexts
SELECT 'tenant_' || i % 4, md5('trace' || i), md5('agent span' || i), 0, 1 << 30, 'agent', 'session', 0 FROM generate_series(0, 3999) i;

INSERT INTO facts
SELECT 'tenant_' || i % 4, 're_' || md5(i::text), (ARRAY['payments', 'shop', 'crm'])[1 + i % 3], 'type_' || i % 11, 'order_' || i / 16, 'order',
  1790000000 + i, '{"amount":180}', decode(md5(i::text), 'hex'), '', 1790000000
FROM generate_series(0, 27999) i;

INSERT INTO subject_links
SELECT 'tenant_' || i % 4, 'order_' || i, 'ticket_' || i FROM generate_series(0, 2999) i
UNION ALL
SELECT 'tenant_' || i % 4, 'ticket_' || i, 'order_' || i FROM generate_series(0, 2999) i;

INSERT INTO sources
SELECT 'tenant_' || t, s.source, '', NULL, 2, 0, 0, 1790000000, 1 FROM generate_series(0, 3) t, (VALUES ('payments'), ('shop'), ('crm')) s(source);

INSERT INTO due (tenant_id, claim_id, due_at, generation, triggered_by, lease_owner, lease_until, parked_at, parked_error)
SELECT tenant_id, claim_id, requested_at, 1, 'action',
  CASE WHEN requested_at % 100 = 0 THEN 'verifier' END, CASE WHEN requested_at % 100 = 0 THEN requested_at END,
  CASE WHEN requested_at % 100 = 1 THEN requested_at END, CASE WHEN requested_at % 100 = 1 THEN 'error' END
FROM claims WHERE requested_at % 2 = 0 OR requested_at % 100 = 1;

INSERT INTO runs
SELECT tenant_id, latest_seq, 'run_' || latest_seq, claim_id, contract_id, contract_version, requested_at, 'action', latest_status, 'PASS', latest_seq - 1,
  '{}', NULL, '{}', 0, false, '', decode(md5(claim_id), 'hex'), decode(md5(claim_id), 'hex')
FROM claims;
INSERT INTO verdicts
SELECT r.tenant_id, r.outcome_seq + n, r.claim_id, (ARRAY['outcome', 'policy'])[1 + n], 'VERIFIED', '{effect_observed}',
  decode(md5(r.claim_id || n), 'hex'), decode(md5(r.claim_id || n), 'hex'), '{}'
FROM runs r, generate_series(0, 1) n;
INSERT INTO chain_heads SELECT tenant_id, max(seq), decode(md5(tenant_id), 'hex') FROM runs GROUP BY tenant_id;
INSERT INTO outbox (tenant_id, kind, claim_id, run_seq, created_at)
SELECT tenant_id, 'action.verified', claim_id, seq, computed_at FROM runs WHERE computed_at % 4 = 0;
INSERT INTO api_keys
SELECT 'tenant_' || i % 4, 'key_' || i, 'recorder', 'ck_', decode(md5(i::text), 'hex'), '{}', 0, NULL, NULL, NULL FROM generate_series(0, 1999) i;
INSERT INTO key_events
SELECT 'tenant_' || i % 4, md5(i::text), (ARRAY['used', 'refused', 'created'])[1 + i % 3], 'key_' || i % 200, 'ck_', '/v1/actions', '2xx', '192.0.2.' || i % 250, '',
  1790000000 + i * 60, 1790000000 + i * 60, 1
FROM generate_series(0, 7999) i;


INSERT INTO parkings
SELECT tenant_id, latest_seq, 16, claim_id, requested_at, 'error' FROM claims WHERE requested_at % 3 = 0;
INSERT INTO new_links (tenant_id, subjects, linked_subjects)
SELECT 'tenant_' || i % 4, ARRAY['order_' || i], ARRAY['ticket_' || i] FROM generate_series(0, 1999) i;
INSERT INTO retentions
SELECT 'tenant_' || i % 4, 1700000000 + i, 1790000000, 10, 10 FROM generate_series(0, 1999) i;
INSERT INTO rejected_facts
SELECT 'tenant_' || i % 4, md5(i::text), 'fact', (ARRAY['payments', 'shop', 'crm'])[1 + i % 3], 'c', 'invalid', 'error', 're_' || i, 'order_' || i, '{}',
  1790000000 + i, 1790000000 + i, 1
FROM generate_series(0, 3999) i;
INSERT INTO webhook_cursors
SELECT 'tenant_' || i % 4, 'endpoint_' || i / 4, 10, 0 FROM generate_series(0, 399) i;
INSERT INTO webhook_deliveries (tenant_id, delivery_id, endpoint, seq, n, kind, payload, created_at, state, due_at, finished_at)
SELECT 'tenant_' || i % 4, 'delivery_' || i, 'endpoint_' || i / 4 % 5, i / 4, 0, 'action.verified', '{}', 1790000000 + i, s.state, 1790000000 + i,
  CASE WHEN s.state <> 'waiting' THEN 1790000000 + i END
FROM generate_series(0, 11999) i, LATERAL (SELECT (ARRAY['waiting', 'dead', 'delivered', 'delivered', 'delivered', 'delivered', 'delivered'])[1 + i % 7]) s(state);
