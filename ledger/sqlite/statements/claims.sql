-- What an update is merged with. Whether it is due decides whether it is unsettled.
-- What is held of one that has settled is that of the version it is pinned to.
-- name: KnownClaims
SELECT c.claim_id, c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type, c.subject_id, c.subject_kind,
  c.requested_at, c.params, c.channel, c.compensates, c.trace_id, c.span_id, c.session_id, c.reference_id, c.tool, c.reported_outcome,
  c.started_nanos, c.agent_completed, c.session_completed, c.latest_status,
  EXISTS (SELECT 1 FROM due d WHERE d.tenant_id = c.tenant_id AND d.claim_id = c.claim_id),
  CASE WHEN c.settled_policy IS NOT NULL THEN
    (SELECT k.held_fields FROM contracts k WHERE k.contract_id = c.contract_id AND k.version = c.contract_version) END
FROM claims c
WHERE c.tenant_id = ?1 AND c.claim_id IN (SELECT value FROM json_each(?2));

-- name: RecordClaims
INSERT INTO claims (tenant_id, claim_id, action_id, contract_id, contract_version, workflow_id, agent_id, action_type, subject_id, subject_kind,
  requested_at, params, channel, compensates, trace_id, span_id, session_id, reference_id, tool, reported_outcome,
  started_nanos, agent_completed, session_completed, recorded_at)
SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
  value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15, value ->> 16, value ->> 17, value ->> 18,
  value ->> 19, value ->> 20, value ->> 21, ?3
FROM jsonb_each(?2)
WHERE true
ON CONFLICT (tenant_id, claim_id) DO UPDATE SET
  workflow_id = excluded.workflow_id, agent_id = excluded.agent_id, subject_id = excluded.subject_id, requested_at = excluded.requested_at,
  params = excluded.params, channel = excluded.channel, trace_id = excluded.trace_id, span_id = excluded.span_id,
  session_id = excluded.session_id, reference_id = excluded.reference_id, tool = excluded.tool, reported_outcome = excluded.reported_outcome,
  started_nanos = excluded.started_nanos, agent_completed = excluded.agent_completed, session_completed = excluded.session_completed;

-- Unsettled actions of some traces that were sent without an agent or a session. What
-- settled once, under a contract that holds it, is not completed any more.
-- name: IncompleteClaims
SELECT c.claim_id, c.trace_id, c.started_nanos, c.agent_id, c.session_id, c.agent_completed, c.session_completed,
  c.latest_seq IS NOT NULL OR EXISTS (SELECT 1 FROM due d WHERE d.tenant_id = c.tenant_id AND d.claim_id = c.claim_id)
FROM claims c
WHERE c.tenant_id = ?1 AND c.trace_id IN (SELECT value FROM json_each(?2)) AND c.started_nanos IS NOT NULL
  AND c.latest_status IS NOT 'settled'
  AND (c.agent_id IS NULL OR c.agent_completed = 1 OR c.session_id IS NULL OR c.session_completed = 1)
  AND (c.settled_policy IS NULL OR NOT EXISTS (
    SELECT 1 FROM contracts k WHERE k.contract_id = c.contract_id AND k.version = c.contract_version AND k.held_fields <> ''));

-- name: CompleteClaims
UPDATE claims SET agent_id = j.value ->> 1, agent_completed = j.value ->> 2, session_id = j.value ->> 3, session_completed = j.value ->> 4
FROM jsonb_each(?2) j
WHERE claims.tenant_id = ?1 AND claims.claim_id = j.value ->> 0;

-- name: CompensationChains
WITH RECURSIVE chain (action_id, compensates) AS (
  SELECT c.action_id, c.compensates FROM claims c WHERE c.tenant_id = ?1 AND c.action_id IN (SELECT value FROM json_each(?2))
  UNION
  SELECT c.action_id, c.compensates FROM chain k JOIN claims c ON c.tenant_id = ?1 AND c.action_id = k.compensates
)
SELECT action_id, coalesce(compensates, '') FROM chain;

-- Latest and latest settled run per action.
-- name: SetLatest
UPDATE claims SET latest_seq = j.value ->> 1, latest_status = j.value ->> 2, latest_outcome = j.value ->> 3, latest_policy = j.value ->> 4,
  settled_policy = coalesce(j.value ->> 5, settled_policy)
FROM jsonb_each(?2) j
WHERE claims.tenant_id = ?1 AND claims.claim_id = j.value ->> 0;

-- Actions under a contract id that were requested within some intervals that do not overlap.
-- name: Peers
SELECT c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type, c.subject_id, c.subject_kind,
  c.requested_at, c.params, c.channel, c.compensates, c.trace_id, c.span_id, c.session_id, c.reference_id, c.tool, c.reported_outcome
FROM jsonb_each(?3) j CROSS JOIN claims c
WHERE c.tenant_id = ?1 AND c.contract_id = ?2 AND c.requested_at BETWEEN j.value ->> 0 AND j.value ->> 1
ORDER BY c.requested_at, c.action_id;

-- name: SnapshotActions
SELECT c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type, c.subject_id, c.subject_kind,
  c.requested_at, c.params, c.channel, c.compensates, c.trace_id, c.span_id, c.session_id, c.reference_id, c.tool, c.reported_outcome
FROM claims c
WHERE c.tenant_id = ?1 AND c.claim_id IN (SELECT value FROM json_each(?2))
ORDER BY +c.action_id;

-- An action id or an internal id; both lookups use their index.
-- name: Actions
SELECT a.* FROM stored_actions a
WHERE a.tenant_id = ?1 AND a.claim_id IN (
  SELECT c.claim_id FROM claims c WHERE c.tenant_id = ?1 AND c.claim_id IN (SELECT value FROM json_each(?2))
  UNION
  SELECT c.claim_id FROM claims c WHERE c.tenant_id = ?1 AND c.action_id IN (SELECT value FROM json_each(?2)));

-- name: ListActions
SELECT a.* FROM stored_actions a
WHERE a.tenant_id = ?1 AND a.requested_at >= ?2 AND a.requested_at < ?3
  AND (a.requested_at, a.claim_id) < (?4, ?5)
  AND (?6 IS NULL OR a.latest_policy = ?6) AND (?7 IS NULL OR a.latest_status = ?7) AND (?8 IS NULL OR a.compensation = ?8)
  AND (?9 IS NULL OR a.contract_id = ?9) AND (?10 IS NULL OR a.agent_id = ?10) AND (?11 IS NULL OR a.workflow_id = ?11)
  AND (?12 IS NULL OR a.subject_id = ?12) AND (?13 IS NULL OR a.trace_id = ?13)
ORDER BY a.requested_at DESC, a.claim_id DESC LIMIT ?14;

-- ListActions by the index of the subject.
-- name: ListActionsOfSubject
SELECT a.* FROM stored_actions a
WHERE a.tenant_id = ?1 AND +a.requested_at >= ?2 AND +a.requested_at < ?3
  AND (+a.requested_at, a.claim_id) < (?4, ?5)
  AND (?6 IS NULL OR a.latest_policy = ?6) AND (?7 IS NULL OR a.latest_status = ?7) AND (?8 IS NULL OR a.compensation = ?8)
  AND (?9 IS NULL OR a.contract_id = ?9) AND (?10 IS NULL OR a.agent_id = ?10) AND (?11 IS NULL OR a.workflow_id = ?11)
  AND a.subject_id = ?12 AND (?13 IS NULL OR a.trace_id = ?13)
ORDER BY +a.requested_at DESC, a.claim_id DESC LIMIT ?14;

-- ListActions by the index of the trace.
-- name: ListActionsOfTrace
SELECT a.* FROM stored_actions a
WHERE a.tenant_id = ?1 AND +a.requested_at >= ?2 AND +a.requested_at < ?3
  AND (+a.requested_at, a.claim_id) < (?4, ?5)
  AND (?6 IS NULL OR a.latest_policy = ?6) AND (?7 IS NULL OR a.latest_status = ?7) AND (?8 IS NULL OR a.compensation = ?8)
  AND (?9 IS NULL OR a.contract_id = ?9) AND (?10 IS NULL OR a.agent_id = ?10) AND (?11 IS NULL OR a.workflow_id = ?11)
  AND (?12 IS NULL OR a.subject_id = ?12) AND a.trace_id = ?13
ORDER BY +a.requested_at DESC, a.claim_id DESC LIMIT ?14;

-- name: Summary
SELECT count(*),
  count(*) FILTER (WHERE c.latest_policy = 'VERIFIED'), count(*) FILTER (WHERE c.latest_policy = 'NOT_VERIFIED'),
  count(*) FILTER (WHERE c.latest_policy = 'UNVERIFIABLE'), count(*) FILTER (WHERE c.latest_status = 'pending'),
  count(*) FILTER (WHERE c.compensation = 'VERIFIED'), count(*) FILTER (WHERE c.latest_seq IS NULL)
FROM compensated_claims c
WHERE c.tenant_id = ?1 AND c.requested_at >= ?2 AND c.requested_at < ?3
  AND (?4 IS NULL OR c.latest_policy = ?4) AND (?5 IS NULL OR c.latest_status = ?5) AND (?6 IS NULL OR c.compensation = ?6)
  AND (?7 IS NULL OR c.contract_id = ?7) AND (?8 IS NULL OR c.agent_id = ?8) AND (?9 IS NULL OR c.workflow_id = ?9)
  AND (?10 IS NULL OR c.subject_id = ?10) AND (?11 IS NULL OR c.trace_id = ?11);

-- The latest correcting action of each action that has one (decision D18).
-- name: Compensations
SELECT a.compensates, a.settled_policy, a.* FROM stored_actions a
WHERE a.tenant_id = ?1 AND a.compensates IN (SELECT value FROM json_each(?2))
  AND NOT EXISTS (
    SELECT 1 FROM claims k
    WHERE k.tenant_id = a.tenant_id AND k.compensates = a.compensates AND (k.requested_at, k.action_id) > (a.requested_at, a.action_id));

-- name: SettledClaims
SELECT c.claim_id FROM claims c WHERE c.tenant_id = ?1 AND c.claim_id IN (SELECT value FROM json_each(?2)) AND c.latest_status = 'settled'
  AND NOT EXISTS (SELECT 1 FROM due d WHERE d.tenant_id = c.tenant_id AND d.claim_id = c.claim_id AND d.parked_at IS NULL);
