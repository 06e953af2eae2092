-- The known ones among actions to record, locked in the order of their ids. What is
-- held of one that has settled is that of the version it is pinned to.
-- name: KnownClaims
SELECT c.claim_id, c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type,
  c.subject_id, c.subject_kind, c.requested_at, c.params::text, c.channel, c.compensates, c.trace_id, c.span_id,
  c.session_id, c.reference_id, c.tool, c.reported_outcome,
  coalesce(c.started_nanos, 0), c.agent_completed, c.session_completed, c.latest_status,
  EXISTS (SELECT FROM due d WHERE d.tenant_id = $1 AND d.claim_id = c.claim_id),
  CASE WHEN c.settled_policy IS NOT NULL THEN
    (SELECT k.held_fields FROM contracts k WHERE k.contract_id = c.contract_id AND k.version = c.contract_version) END
FROM claims c
WHERE c.tenant_id = $1 AND c.claim_id = ANY ($2::text[])
ORDER BY c.claim_id
FOR NO KEY UPDATE OF c;

-- name: UpdateClaims
UPDATE claims c
SET workflow_id = n.workflow_id, agent_id = n.agent_id, subject_id = n.subject_id, requested_at = n.requested_at,
  params = n.params::json, channel = n.channel, trace_id = n.trace_id, span_id = n.span_id, session_id = n.session_id,
  reference_id = n.reference_id, tool = n.tool, reported_outcome = n.reported_outcome,
  started_nanos = nullif(n.started_nanos, 0), agent_completed = n.agent_completed, session_completed = n.session_completed
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[],
    $11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::boolean[], $17::boolean[])
  AS n(claim_id, workflow_id, agent_id, subject_id, requested_at, params, channel, trace_id, span_id,
    session_id, reference_id, tool, reported_outcome, started_nanos, agent_completed, session_completed)
WHERE c.tenant_id = $1 AND c.claim_id = n.claim_id;

-- Transactions that record compensations of one tenant follow each other, or
-- neither of two would see the other's half of a cycle.
-- name: LockCompensations
SELECT pg_advisory_xact_lock(hashtextextended('countersign compensates ' || $1, 0));

-- name: CompensationChains
WITH RECURSIVE chain AS (
  SELECT c.action_id, c.compensates
  FROM claims c
  WHERE c.tenant_id = $1 AND c.action_id = ANY ($2::text[])
  UNION
  SELECT c.action_id, c.compensates
  FROM chain w JOIN claims c ON c.tenant_id = $1 AND c.action_id = w.compensates
)
SELECT action_id, coalesce(compensates, '') FROM chain;

-- Fills agent and session of unsettled actions, by id or by trace, from the
-- innermost context that has one (decision D31). What was filled in before
-- follows a better context that arrives later, so that order does not matter. What
-- settled once, under a contract that holds it, is not completed any more.
-- name: CompleteClaims
WITH wanting AS MATERIALIZED (
  SELECT c.claim_id, c.trace_id, c.started_nanos
  FROM claims c
  WHERE c.tenant_id = $1 AND (c.claim_id = ANY ($2::text[]) OR c.trace_id = ANY ($3::text[]))
    AND c.trace_id IS NOT NULL AND c.started_nanos IS NOT NULL AND c.latest_status IS DISTINCT FROM 'settled'
    AND (c.agent_id IS NULL OR c.agent_completed OR c.session_id IS NULL OR c.session_completed)
    AND (c.settled_policy IS NULL OR NOT EXISTS (SELECT FROM contracts k
      WHERE k.contract_id = c.contract_id AND k.version = c.contract_version AND k.held_fields <> ''))
  ORDER BY c.claim_id
  FOR NO KEY UPDATE OF c
), found AS (
  SELECT w.claim_id,
    (SELECT t.agent FROM trace_contexts t
      WHERE t.tenant_id = $1 AND t.trace_id = w.trace_id AND t.agent IS NOT NULL
        AND t.start_nanos <= w.started_nanos AND t.end_nanos >= w.started_nanos
      ORDER BY t.start_nanos DESC, t.span_id DESC LIMIT 1) AS agent,
    (SELECT t.session FROM trace_contexts t
      WHERE t.tenant_id = $1 AND t.trace_id = w.trace_id AND t.session IS NOT NULL
        AND t.start_nanos <= w.started_nanos AND t.end_nanos >= w.started_nanos
      ORDER BY t.start_nanos DESC, t.span_id DESC LIMIT 1) AS session
  FROM wanting w
), better AS (
  SELECT c.claim_id,
    CASE WHEN c.agent_id IS NULL OR c.agent_completed THEN coalesce(f.agent, c.agent_id) ELSE c.agent_id END AS agent_id,
    CASE WHEN c.session_id IS NULL OR c.session_completed THEN coalesce(f.session, c.session_id) ELSE c.session_id END AS session_id
  FROM found f JOIN claims c ON c.tenant_id = $1 AND c.claim_id = f.claim_id
)
UPDATE claims c
SET agent_id = b.agent_id, agent_completed = c.agent_completed OR c.agent_id IS DISTINCT FROM b.agent_id,
  session_id = b.session_id, session_completed = c.session_completed OR c.session_id IS DISTINCT FROM b.session_id
FROM better b
WHERE c.tenant_id = $1 AND c.claim_id = b.claim_id
  AND (c.agent_id IS DISTINCT FROM b.agent_id OR c.session_id IS DISTINCT FROM b.session_id)
RETURNING c.claim_id, c.agent_id, c.session_id,
  c.latest_status IS NOT NULL OR EXISTS (SELECT FROM due d WHERE d.tenant_id = $1 AND d.claim_id = c.claim_id);

-- name: LockClaims
SELECT c.claim_id FROM claims c
WHERE c.tenant_id = $1 AND c.claim_id = ANY ($2::text[])
ORDER BY c.claim_id
FOR NO KEY UPDATE;

-- The latest run per action, as StoreRuns leaves it.
-- name: SetLatest
UPDATE claims c
SET latest_seq = n.seq, latest_status = n.status, latest_outcome = n.outcome, latest_policy = n.policy,
  settled_policy = coalesce(n.settled, c.settled_policy)
FROM unnest($2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[]) AS n(claim_id, seq, status, outcome, policy, settled)
WHERE c.tenant_id = $1 AND c.claim_id = n.claim_id;

-- name: SettledClaims
SELECT c.claim_id FROM claims c WHERE c.tenant_id = $1 AND c.claim_id = ANY ($2::text[]) AND c.latest_status = 'settled'
  AND NOT EXISTS (SELECT 1 FROM due d WHERE d.tenant_id = c.tenant_id AND d.claim_id = c.claim_id AND d.parked_at IS NULL);
