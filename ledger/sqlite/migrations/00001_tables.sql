-- Every key starts with tenant_id. Texts compare by their bytes. Times are whole
-- seconds since 1970 (decision D1); what ends in _nanos is OTLP nanoseconds. NULL
-- is "not sent". Truths are 0 and 1. Lists are JSON arrays of strings.

-- +goose Up

CREATE TABLE tenants (
  tenant_id  TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Contracts are shared by all tenants.
CREATE TABLE contracts (
  contract_id    TEXT NOT NULL,
  version        INTEGER NOT NULL,
  hash           TEXT NOT NULL,
  document       BLOB NOT NULL,
  window_seconds INTEGER NOT NULL,
  published_at   INTEGER NOT NULL,
  PRIMARY KEY (contract_id, version)
) STRICT;

-- What reversed_by names: a fact of this type undoes the action (AC "reversal_observed").
CREATE TABLE contract_reversals (
  contract_id    TEXT NOT NULL,
  version        INTEGER NOT NULL,
  position       INTEGER NOT NULL,
  source         TEXT,
  fact_type      TEXT NOT NULL,
  within_seconds INTEGER NOT NULL,
  PRIMARY KEY (contract_id, version, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX contract_reversals_type ON contract_reversals (fact_type);

-- The sources whose watermark settlement waits for.
CREATE TABLE contract_sources (
  source      TEXT NOT NULL,
  contract_id TEXT NOT NULL,
  version     INTEGER NOT NULL,
  PRIMARY KEY (source, contract_id, version)
) STRICT, WITHOUT ROWID;

-- Recorded actions. latest_* is the latest run, settled_policy the policy
-- verdict of the latest run that settled (decision D18). *_completed says that
-- the value came from trace context, not with the action (decision D31).
CREATE TABLE claims (
  tenant_id         TEXT NOT NULL,
  claim_id          TEXT NOT NULL,
  action_id         TEXT NOT NULL,
  contract_id       TEXT NOT NULL,
  contract_version  INTEGER NOT NULL,
  workflow_id       TEXT,
  agent_id          TEXT,
  action_type       TEXT,
  subject_id        TEXT NOT NULL,
  subject_kind      TEXT,
  requested_at      INTEGER NOT NULL,
  params            TEXT,
  channel           TEXT,
  compensates       TEXT,
  trace_id          TEXT,
  span_id           TEXT,
  session_id        TEXT,
  reference_id      TEXT,
  tool              TEXT,
  reported_outcome  TEXT,
  started_nanos     INTEGER,
  recorded_at       INTEGER NOT NULL,
  agent_completed   INTEGER NOT NULL DEFAULT 0,
  session_completed INTEGER NOT NULL DEFAULT 0,
  latest_seq        INTEGER,
  latest_status     TEXT,
  latest_outcome    TEXT,
  latest_policy     TEXT,
  settled_policy    TEXT,
  PRIMARY KEY (tenant_id, claim_id),
  UNIQUE (tenant_id, action_id)
) STRICT;
CREATE INDEX claims_subject ON claims (tenant_id, subject_id);
CREATE INDEX claims_requested ON claims (tenant_id, requested_at, claim_id);
CREATE INDEX claims_contract ON claims (tenant_id, contract_id, requested_at);
CREATE INDEX claims_trace ON claims (tenant_id, trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX claims_compensates ON claims (tenant_id, compensates, requested_at, action_id) WHERE compensates IS NOT NULL;

-- Agent-like spans (decision D31).
CREATE TABLE trace_contexts (
  tenant_id   TEXT NOT NULL,
  trace_id    TEXT NOT NULL,
  span_id     TEXT NOT NULL,
  start_nanos INTEGER NOT NULL,
  end_nanos   INTEGER NOT NULL,
  agent       TEXT,
  session     TEXT,
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, trace_id, span_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX trace_contexts_start ON trace_contexts (tenant_id, trace_id, start_nanos, span_id);

-- Append-only. Rows have a rowid so that a batch writes at the end of the table;
-- it tells the rows of one transaction apart and decides nothing else (decision D5).
CREATE TABLE facts (
  tenant_id    TEXT NOT NULL,
  raw_ref      TEXT NOT NULL,
  source       TEXT NOT NULL,
  fact_type    TEXT NOT NULL,
  subject_id   TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  occurred_at  INTEGER NOT NULL,
  attributes   TEXT NOT NULL,
  content_hash BLOB NOT NULL,
  connection   TEXT NOT NULL,
  ingested_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, raw_ref)
) STRICT;
CREATE INDEX facts_subject ON facts (tenant_id, subject_id);

-- Both directions of a link are rows (decision D7).
CREATE TABLE subject_links (
  tenant_id         TEXT NOT NULL,
  subject_id        TEXT NOT NULL,
  linked_subject_id TEXT NOT NULL,
  PRIMARY KEY (tenant_id, subject_id, linked_subject_id)
) STRICT, WITHOUT ROWID;

-- Connections by source. trust and trust_override are engine.Trust.
CREATE TABLE sources (
  tenant_id      TEXT NOT NULL,
  source         TEXT NOT NULL,
  connection     TEXT NOT NULL,
  health         TEXT,
  trust          INTEGER NOT NULL DEFAULT 0,
  trust_override INTEGER NOT NULL DEFAULT 0,
  clock_skew     INTEGER NOT NULL DEFAULT 0,
  watermark      INTEGER,
  delivered      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, source, connection)
) STRICT, WITHOUT ROWID;

-- What to verify when. A row with a lease that has not ended is somebody's work.
CREATE TABLE due (
  tenant_id    TEXT NOT NULL,
  claim_id     TEXT NOT NULL,
  due_at       INTEGER NOT NULL,
  generation   INTEGER NOT NULL,
  triggered_by TEXT NOT NULL,
  attempts     INTEGER NOT NULL DEFAULT 0,
  lease_owner  TEXT,
  lease_until  INTEGER,
  parked_at    INTEGER,
  parked_error TEXT,
  made         INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, claim_id),
  FOREIGN KEY (tenant_id, claim_id) REFERENCES claims (tenant_id, claim_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX due_queue ON due (tenant_id, due_at, claim_id) WHERE parked_at IS NULL;
CREATE INDEX due_leased ON due (tenant_id, lease_until) WHERE lease_owner IS NOT NULL;
CREATE INDEX due_parked ON due (tenant_id, parked_at) WHERE parked_at IS NOT NULL;

-- Append-only. seq is the chain position of the policy verdict.
CREATE TABLE runs (
  tenant_id        TEXT NOT NULL,
  seq              INTEGER NOT NULL,
  run_id           TEXT NOT NULL,
  claim_id         TEXT NOT NULL,
  contract_id      TEXT NOT NULL,
  contract_version INTEGER NOT NULL,
  computed_at      INTEGER NOT NULL,
  triggered_by     TEXT NOT NULL,
  status           TEXT NOT NULL,
  headline         TEXT NOT NULL,
  outcome_seq      INTEGER NOT NULL,
  report           TEXT,
  next_check_at    INTEGER,
  events           TEXT NOT NULL,
  previous_seq     INTEGER NOT NULL,
  changed          INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  FOREIGN KEY (tenant_id, claim_id) REFERENCES claims (tenant_id, claim_id)
) STRICT;
CREATE INDEX runs_claim ON runs (tenant_id, claim_id, seq);

-- Append-only. The chain of a tenant in order of seq, without gaps (decision D25).
CREATE TABLE verdicts (
  tenant_id    TEXT NOT NULL,
  seq          INTEGER NOT NULL,
  claim_id     TEXT NOT NULL,
  lens         TEXT NOT NULL,
  raw_verdict  TEXT NOT NULL,
  reasons      TEXT NOT NULL,
  verdict_hash BLOB NOT NULL,
  chain_hash   BLOB NOT NULL,
  document     TEXT NOT NULL,
  PRIMARY KEY (tenant_id, seq)
) STRICT;
CREATE INDEX verdicts_hash ON verdicts (verdict_hash);

CREATE TABLE chain_heads (
  tenant_id  TEXT NOT NULL PRIMARY KEY,
  seq        INTEGER NOT NULL,
  chain_hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- id is made of the run's seq and the event's place in the run, so it is never used twice.
CREATE TABLE outbox (
  tenant_id   TEXT NOT NULL,
  id          INTEGER NOT NULL,
  kind        TEXT NOT NULL,
  claim_id    TEXT NOT NULL,
  run_seq     INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0,
  lease_owner TEXT,
  lease_until INTEGER,
  retry_at    INTEGER,
  last_error  TEXT,
  PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_oldest ON outbox (created_at, tenant_id, id);

CREATE TABLE api_keys (
  tenant_id    TEXT NOT NULL,
  key_id       TEXT NOT NULL,
  role         TEXT NOT NULL,
  prefix       TEXT NOT NULL,
  hash         BLOB NOT NULL,
  sources      TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER,
  revoked_at   INTEGER,
  last_used_at INTEGER,
  PRIMARY KEY (tenant_id, key_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX api_keys_hash ON api_keys (hash);

-- Runs with both verdicts.
CREATE VIEW stored_runs AS
SELECT r.tenant_id, r.seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.computed_at, r.triggered_by,
  r.status, r.headline, r.report, r.next_check_at, r.events, r.previous_seq, r.changed,
  o.seq AS outcome_seq, o.raw_verdict AS outcome_raw, o.reasons AS outcome_reasons, o.verdict_hash AS outcome_hash,
  o.chain_hash AS outcome_chain, o.document AS outcome_document,
  p.raw_verdict AS policy_raw, p.reasons AS policy_reasons, p.verdict_hash AS policy_hash,
  p.chain_hash AS policy_chain, p.document AS policy_document
FROM runs r
JOIN verdicts o ON o.tenant_id = r.tenant_id AND o.seq = r.outcome_seq
JOIN verdicts p ON p.tenant_id = r.tenant_id AND p.seq = r.seq;

-- Actions with the settled policy verdict of their latest correcting action.
CREATE VIEW compensated_claims AS
SELECT c.*,
  (SELECT k.settled_policy FROM claims k WHERE k.tenant_id = c.tenant_id AND k.compensates = c.action_id
   ORDER BY k.requested_at DESC, k.action_id DESC LIMIT 1) AS compensation
FROM claims c;

-- Actions with their latest run, what is due, and the settled policy verdict of
-- their latest correcting action. The parts that a statement does not name cost it nothing.
CREATE VIEW stored_actions AS
SELECT c.tenant_id, c.claim_id, c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type, c.subject_id, c.subject_kind,
  c.requested_at, c.params, c.channel, c.compensates, c.trace_id, c.span_id, c.session_id, c.reference_id, c.tool, c.reported_outcome,
  c.recorded_at, c.latest_seq, c.latest_status, c.latest_policy, c.settled_policy,
  CASE WHEN d.parked_at IS NULL THEN d.due_at END AS next_check_at, d.parked_error,
  (SELECT k.settled_policy FROM claims k WHERE k.tenant_id = c.tenant_id AND k.compensates = c.action_id
   ORDER BY k.requested_at DESC, k.action_id DESC LIMIT 1) AS compensation,
  r.seq, r.run_id, r.contract_id AS run_contract_id, r.contract_version AS run_contract_version, r.computed_at, r.triggered_by,
  r.status, r.headline, r.report, r.next_check_at AS run_next_check_at, r.events, r.previous_seq, r.changed,
  o.seq AS outcome_seq, o.raw_verdict AS outcome_raw, o.reasons AS outcome_reasons, o.verdict_hash AS outcome_hash,
  o.chain_hash AS outcome_chain, o.document AS outcome_document,
  p.raw_verdict AS policy_raw, p.reasons AS policy_reasons, p.verdict_hash AS policy_hash,
  p.chain_hash AS policy_chain, p.document AS policy_document
FROM claims c
LEFT JOIN due d ON d.tenant_id = c.tenant_id AND d.claim_id = c.claim_id
LEFT JOIN runs r ON r.tenant_id = c.tenant_id AND r.seq = c.latest_seq
LEFT JOIN verdicts o ON o.tenant_id = c.tenant_id AND o.seq = r.outcome_seq
LEFT JOIN verdicts p ON p.tenant_id = c.tenant_id AND p.seq = r.seq;

-- Facts, runs and verdicts are append-only for every program that uses the schema.
-- +goose StatementBegin
CREATE TRIGGER facts_no_update BEFORE UPDATE ON facts BEGIN SELECT RAISE(ABORT, 'facts are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER facts_no_delete BEFORE DELETE ON facts BEGIN SELECT RAISE(ABORT, 'facts are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER runs_no_update BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'runs are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'runs are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER verdicts_no_update BEFORE UPDATE ON verdicts BEGIN SELECT RAISE(ABORT, 'verdicts are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER verdicts_no_delete BEFORE DELETE ON verdicts BEGIN SELECT RAISE(ABORT, 'verdicts are append-only'); END;
-- +goose StatementEnd

-- The planner's idea of a store in use, instead of statistics of whatever is in
-- it when somebody runs ANALYZE: plans are then the same from the first row to
-- the last, and held by a test. Each entry is the number of rows, then how many
-- share the first column of the index, the first two, ...
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('tenants', 'tenants', '10 1'),
  ('contracts', 'sqlite_autoindex_contracts_1', '100 5 1'),
  ('contract_reversals', 'contract_reversals', '100 5 2 1'),
  ('contract_reversals', 'contract_reversals_type', '100 10'),
  ('contract_sources', 'contract_sources', '300 30 5 1'),
  ('claims', 'sqlite_autoindex_claims_1', '1000000 500000 1'),
  ('claims', 'sqlite_autoindex_claims_2', '1000000 500000 1'),
  ('claims', 'claims_subject', '1000000 500000 2'),
  ('claims', 'claims_requested', '1000000 500000 3 1'),
  ('claims', 'claims_contract', '1000000 500000 50000 2'),
  ('claims', 'claims_trace', '1000000 500000 5'),
  ('claims', 'claims_compensates', '10000 5000 1 1 1'),
  ('trace_contexts', 'trace_contexts', '1000000 500000 3 1'),
  ('trace_contexts', 'trace_contexts_start', '1000000 500000 3 1 1'),
  ('facts', 'sqlite_autoindex_facts_1', '10000000 5000000 1'),
  ('facts', 'facts_subject', '10000000 5000000 8'),
  ('subject_links', 'subject_links', '1000000 500000 2 1'),
  ('sources', 'sources', '50 20 2 1'),
  ('due', 'due', '10000 5000 1'),
  ('due', 'due_queue', '10000 5000 20 1'),
  ('due', 'due_leased', '1000 500 100'),
  ('due', 'due_parked', '100 50 5'),
  ('runs', 'sqlite_autoindex_runs_1', '2000000 1000000 1'),
  ('runs', 'runs_claim', '2000000 1000000 2 1'),
  ('verdicts', 'sqlite_autoindex_verdicts_1', '4000000 2000000 1'),
  ('verdicts', 'verdicts_hash', '4000000 2'),
  ('chain_heads', 'chain_heads', '10 1'),
  ('outbox', 'outbox', '1000 500 1'),
  ('outbox', 'outbox_oldest', '1000 20 10 1'),
  ('api_keys', 'api_keys', '20 10 1'),
  ('api_keys', 'api_keys_hash', '20 1');
