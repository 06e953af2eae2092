-- Every key starts with tenant_id, the distribution column on a distributed
-- PostgreSQL. Ids compare by their bytes (COLLATE "C"). Times are whole seconds
-- since 1970 (decision D1); what ends in _nanos is OTLP nanoseconds. NULL is
-- "not sent". JSON from outside is json, not jsonb: numbers keep their text
-- (decision D35).

-- +goose Up

CREATE TABLE tenants (
  tenant_id  text COLLATE "C" PRIMARY KEY,
  created_at bigint NOT NULL
);

-- Contracts are shared by all tenants: reference tables on a distributed PostgreSQL.
CREATE TABLE contracts (
  contract_id    text COLLATE "C" NOT NULL,
  version        integer NOT NULL,
  hash           text COLLATE "C" NOT NULL,
  document       bytea NOT NULL,
  window_seconds bigint NOT NULL,
  published_at   bigint NOT NULL,
  PRIMARY KEY (contract_id, version)
);

-- What reversed_by names: a fact of this type undoes the action (AC "reversal_observed").
CREATE TABLE contract_reversals (
  contract_id    text COLLATE "C" NOT NULL,
  version        integer NOT NULL,
  position       integer NOT NULL,
  source         text COLLATE "C",
  fact_type      text COLLATE "C" NOT NULL,
  within_seconds bigint NOT NULL,
  PRIMARY KEY (contract_id, version, position)
);

-- The sources whose watermark settlement waits for.
CREATE TABLE contract_sources (
  contract_id text COLLATE "C" NOT NULL,
  version     integer NOT NULL,
  source      text COLLATE "C" NOT NULL,
  PRIMARY KEY (contract_id, version, source)
);

-- Recorded actions. latest_* is the latest run, settled_policy the policy
-- verdict of the latest run that settled (decision D18). *_completed says that
-- the value came from trace context, not with the action (decision D31).
CREATE TABLE claims (
  tenant_id         text COLLATE "C" NOT NULL,
  claim_id          text COLLATE "C" NOT NULL,
  action_id         text COLLATE "C" NOT NULL,
  contract_id       text COLLATE "C" NOT NULL,
  contract_version  integer NOT NULL,
  workflow_id       text COLLATE "C",
  agent_id          text COLLATE "C",
  action_type       text COLLATE "C",
  subject_id        text COLLATE "C" NOT NULL,
  subject_kind      text COLLATE "C",
  requested_at      bigint NOT NULL,
  params            json,
  channel           text COLLATE "C",
  compensates       text COLLATE "C",
  trace_id          text COLLATE "C",
  span_id           text COLLATE "C",
  session_id        text COLLATE "C",
  reference_id      text COLLATE "C",
  tool              text COLLATE "C",
  reported_outcome  text COLLATE "C",
  started_nanos     bigint,
  recorded_at       bigint NOT NULL,
  agent_completed   boolean NOT NULL DEFAULT false,
  session_completed boolean NOT NULL DEFAULT false,
  latest_seq        bigint,
  latest_status     text COLLATE "C",
  latest_outcome    text COLLATE "C",
  latest_policy     text COLLATE "C",
  settled_policy    text COLLATE "C",
  PRIMARY KEY (tenant_id, claim_id),
  UNIQUE (tenant_id, action_id)
) WITH (fillfactor = 85);
CREATE INDEX claims_subject ON claims (tenant_id, subject_id);
CREATE INDEX claims_requested ON claims (tenant_id, requested_at, claim_id);
CREATE INDEX claims_contract ON claims (tenant_id, contract_id, requested_at);
CREATE INDEX claims_trace ON claims (tenant_id, trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX claims_compensates ON claims (tenant_id, compensates) WHERE compensates IS NOT NULL;

-- Agent-like spans (decision D31).
CREATE TABLE trace_contexts (
  tenant_id   text COLLATE "C" NOT NULL,
  trace_id    text COLLATE "C" NOT NULL,
  span_id     text COLLATE "C" NOT NULL,
  start_nanos bigint NOT NULL,
  end_nanos   bigint NOT NULL,
  agent       text COLLATE "C",
  session     text COLLATE "C",
  recorded_at bigint NOT NULL,
  PRIMARY KEY (tenant_id, trace_id, span_id)
);

-- Append-only.
CREATE TABLE facts (
  tenant_id    text COLLATE "C" NOT NULL,
  raw_ref      text COLLATE "C" NOT NULL,
  source       text COLLATE "C" NOT NULL,
  fact_type    text COLLATE "C" NOT NULL,
  subject_id   text COLLATE "C" NOT NULL,
  subject_kind text COLLATE "C" NOT NULL,
  occurred_at  bigint NOT NULL,
  attributes   json NOT NULL,
  content_hash bytea NOT NULL,
  connection   text COLLATE "C" NOT NULL,
  ingested_at  bigint NOT NULL,
  PRIMARY KEY (tenant_id, raw_ref)
);
CREATE INDEX facts_subject ON facts (tenant_id, subject_id, occurred_at);
-- For reports over a time and for retention, at next to no cost for the writer.
CREATE INDEX facts_time ON facts USING brin (occurred_at);

-- Both directions of a link are rows (decision D7).
CREATE TABLE subject_links (
  tenant_id         text COLLATE "C" NOT NULL,
  subject_id        text COLLATE "C" NOT NULL,
  linked_subject_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, subject_id, linked_subject_id)
);

-- Connections by source. trust and trust_override are engine.Trust.
CREATE TABLE sources (
  tenant_id      text COLLATE "C" NOT NULL,
  source         text COLLATE "C" NOT NULL,
  connection     text COLLATE "C" NOT NULL,
  health         text COLLATE "C",
  trust          smallint NOT NULL DEFAULT 0,
  trust_override smallint NOT NULL DEFAULT 0,
  clock_skew     bigint NOT NULL DEFAULT 0,
  watermark      bigint,
  delivered      smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, source, connection)
);

-- What to verify when. A row with a lease that has not ended is somebody's work.
CREATE TABLE due (
  tenant_id    text COLLATE "C" NOT NULL,
  claim_id     text COLLATE "C" NOT NULL,
  due_at       bigint NOT NULL,
  generation   bigint NOT NULL,
  triggered_by text COLLATE "C" NOT NULL,
  attempts     integer NOT NULL DEFAULT 0,
  lease_owner  text COLLATE "C",
  lease_until  bigint,
  parked_at    bigint,
  parked_error text,
  made         boolean NOT NULL DEFAULT false,
  PRIMARY KEY (tenant_id, claim_id)
) WITH (fillfactor = 70);
CREATE INDEX due_at ON due (tenant_id, due_at, claim_id) WHERE parked_at IS NULL;
CREATE INDEX due_leased ON due (tenant_id, lease_until) WHERE lease_until IS NOT NULL AND parked_at IS NULL;
CREATE INDEX due_parked ON due (tenant_id, parked_at) WHERE parked_at IS NOT NULL;

-- Append-only. seq is the chain position of the policy verdict.
CREATE TABLE runs (
  tenant_id        text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  run_id           text COLLATE "C" NOT NULL,
  claim_id         text COLLATE "C" NOT NULL,
  contract_id      text COLLATE "C" NOT NULL,
  contract_version integer NOT NULL,
  computed_at      bigint NOT NULL,
  triggered_by     text COLLATE "C" NOT NULL,
  status           text COLLATE "C" NOT NULL,
  headline         text NOT NULL,
  outcome_seq      bigint NOT NULL,
  report           json,
  next_check_at    bigint,
  events           text[] NOT NULL,
  previous_seq     bigint NOT NULL,
  changed          boolean NOT NULL,
  PRIMARY KEY (tenant_id, seq)
);
CREATE INDEX runs_claim ON runs (tenant_id, claim_id, seq);

-- Append-only. The chain of a tenant in order of seq, without gaps (decision D25).
CREATE TABLE verdicts (
  tenant_id    text COLLATE "C" NOT NULL,
  seq          bigint NOT NULL,
  claim_id     text COLLATE "C" NOT NULL,
  lens         text COLLATE "C" NOT NULL,
  raw_verdict  text COLLATE "C" NOT NULL,
  reasons      text[] NOT NULL,
  verdict_hash bytea NOT NULL,
  chain_hash   bytea NOT NULL,
  document     text NOT NULL,
  PRIMARY KEY (tenant_id, seq)
);
CREATE INDEX verdicts_hash ON verdicts (verdict_hash);

CREATE TABLE chain_heads (
  tenant_id  text COLLATE "C" PRIMARY KEY,
  seq        bigint NOT NULL,
  chain_hash bytea NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE outbox (
  tenant_id   text COLLATE "C" NOT NULL,
  id          bigint GENERATED BY DEFAULT AS IDENTITY,
  kind        text COLLATE "C" NOT NULL,
  claim_id    text COLLATE "C" NOT NULL,
  run_seq     bigint NOT NULL,
  created_at  bigint NOT NULL,
  attempts    integer NOT NULL DEFAULT 0,
  lease_owner text COLLATE "C",
  lease_until bigint,
  retry_at    bigint,
  last_error  text,
  PRIMARY KEY (tenant_id, id)
) WITH (fillfactor = 70);
CREATE INDEX outbox_oldest ON outbox (created_at, tenant_id, id);

CREATE TABLE api_keys (
  tenant_id    text COLLATE "C" NOT NULL,
  key_id       text COLLATE "C" NOT NULL,
  role         text COLLATE "C" NOT NULL,
  prefix       text COLLATE "C" NOT NULL,
  hash         bytea NOT NULL,
  sources      text[] NOT NULL,
  created_at   bigint NOT NULL,
  expires_at   bigint,
  revoked_at   bigint,
  last_used_at bigint,
  PRIMARY KEY (tenant_id, key_id)
);
CREATE INDEX api_keys_hash ON api_keys (hash);

-- countersign_decimal reads a text as a number, or gives NULL where it does not
-- read as one (decision D2). The pattern is checked before the cast, so that
-- the cast cannot fail. The first branch is a shortcut: at most 36 digits and no
-- exponent are always within the limits.
-- +goose StatementBegin
CREATE FUNCTION countersign_decimal(value text) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  trimmed   text COLLATE "C" := btrim(value, ' ');
  number    numeric;
  magnitude numeric;
BEGIN
  IF octet_length(trimmed) <= 38 AND trimmed ~ '^[+-]?[0-9]{1,18}(\.[0-9]{1,18})?$' THEN
    RETURN trimmed::numeric;
  END IF;
  IF octet_length(trimmed) > 1024 OR trimmed !~ '^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$' THEN
    RETURN NULL;
  END IF;
  number := trimmed::numeric;
  magnitude := abs(number);
  IF magnitude = 0 THEN
    RETURN 0;
  END IF;
  IF magnitude < 1e-100 OR magnitude >= 1e101 THEN
    RETURN NULL;
  END IF;
  IF length(btrim(replace(magnitude::text, '.', ''), '0')) > 38 THEN
    RETURN NULL;
  END IF;
  RETURN number;
END
$$;
-- +goose StatementEnd
