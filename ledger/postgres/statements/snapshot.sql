-- name: SnapshotActions
SELECT c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type,
  c.subject_id, c.subject_kind, c.requested_at, c.params::text, c.channel, c.compensates, c.trace_id, c.span_id,
  c.session_id, c.reference_id, c.tool, c.reported_outcome, c.latest_seq IS NOT NULL
FROM claims c
WHERE c.tenant_id = $1 AND c.claim_id = ANY ($2::text[])
ORDER BY c.action_id;

-- Actions under the same contract, any version, that aggregate limits of the
-- batch may reach (decision D17).
-- name: Peers
SELECT c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type,
  c.subject_id, c.subject_kind, c.requested_at, c.params::text, c.channel, c.compensates, c.trace_id, c.span_id,
  c.session_id, c.reference_id, c.tool, c.reported_outcome
FROM claims c
WHERE c.tenant_id = $1 AND c.contract_id = $3
  AND EXISTS (SELECT FROM claims b
    WHERE b.tenant_id = $1 AND b.claim_id = ANY ($2::text[])
      AND c.requested_at >= b.requested_at - $4 AND c.requested_at <= b.requested_at + $5)
ORDER BY c.requested_at, c.action_id;
