-- An action is read together with its latest run and its due row: the columns
-- are those of storedColumns in Go.

-- name: Actions
SELECT c.claim_id, c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type,
  c.subject_id, c.subject_kind, c.requested_at, c.params::text, c.channel, c.compensates, c.trace_id, c.span_id,
  c.session_id, c.reference_id, c.tool, c.reported_outcome,
  c.recorded_at, CASE WHEN d.parked_at IS NULL THEN d.due_at END, d.parked_error,
  r.seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.computed_at, r.triggered_by, r.status, r.headline,
  r.report::text, r.next_check_at, r.events, r.previous_seq, r.changed,
  o.seq, o.raw_verdict, o.reasons, o.verdict_hash, o.chain_hash, o.document,
  p.raw_verdict, p.reasons, p.verdict_hash, p.chain_hash, coalesce(left(o.document, p.shared), '') || p.document
FROM claims c
LEFT JOIN due d ON d.tenant_id = $1 AND d.claim_id = c.claim_id
LEFT JOIN runs r ON r.tenant_id = $1 AND r.seq = c.latest_seq
LEFT JOIN verdicts o ON o.tenant_id = $1 AND o.seq = r.outcome_seq
LEFT JOIN verdicts p ON p.tenant_id = $1 AND p.seq = r.seq
WHERE c.tenant_id = $1 AND (c.claim_id = ANY ($2::text[]) OR c.action_id = ANY ($2::text[]));

-- Newest first; a page goes on after ($9, $10).
-- name: ListActions
WITH corrected AS (
  SELECT DISTINCT ON (b.compensates) b.compensates AS action_id, b.settled_policy
  FROM claims b
  WHERE b.tenant_id = $1 AND b.compensates IS NOT NULL AND $2 = 'COMPENSATED'
  ORDER BY b.compensates, b.requested_at DESC, b.action_id DESC
), page AS MATERIALIZED (
  SELECT c.*
  FROM claims c
  WHERE c.tenant_id = $1
    AND ($2 = '' OR ($2 = 'PENDING' AND c.latest_status = 'pending')
      OR ($2 = 'COMPENSATED' AND c.action_id IN (SELECT k.action_id FROM corrected k WHERE k.settled_policy = 'VERIFIED'))
      OR ($2 NOT IN ('PENDING', 'COMPENSATED') AND c.latest_policy = $11))
    AND ($3 = '' OR c.contract_id = $3) AND ($4 = '' OR c.agent_id = $4) AND ($5 = '' OR c.subject_id = $5)
    AND ($6 = '' OR c.trace_id = $6) AND ($7 = '' OR c.workflow_id = $7)
    AND ($12::bigint IS NULL OR c.requested_at >= $12) AND ($13::bigint IS NULL OR c.requested_at < $13)
    AND ($9::bigint IS NULL OR (c.requested_at, c.claim_id) < ($9, $10))
  ORDER BY c.requested_at DESC, c.claim_id DESC
  LIMIT $8
)
SELECT c.claim_id, c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type,
  c.subject_id, c.subject_kind, c.requested_at, c.params::text, c.channel, c.compensates, c.trace_id, c.span_id,
  c.session_id, c.reference_id, c.tool, c.reported_outcome,
  c.recorded_at, CASE WHEN d.parked_at IS NULL THEN d.due_at END, d.parked_error,
  r.seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.computed_at, r.triggered_by, r.status, r.headline,
  r.report::text, r.next_check_at, r.events, r.previous_seq, r.changed,
  o.seq, o.raw_verdict, o.reasons, o.verdict_hash, o.chain_hash, o.document,
  p.raw_verdict, p.reasons, p.verdict_hash, p.chain_hash, coalesce(left(o.document, p.shared), '') || p.document
FROM page c
LEFT JOIN due d ON d.tenant_id = $1 AND d.claim_id = c.claim_id
LEFT JOIN runs r ON r.tenant_id = $1 AND r.seq = c.latest_seq
LEFT JOIN verdicts o ON o.tenant_id = $1 AND o.seq = r.outcome_seq
LEFT JOIN verdicts p ON p.tenant_id = $1 AND p.seq = r.seq
ORDER BY c.requested_at DESC, c.claim_id DESC;

-- name: Summary
WITH corrected AS (
  SELECT DISTINCT ON (b.compensates) b.compensates AS action_id, b.settled_policy
  FROM claims b
  WHERE b.tenant_id = $1 AND b.compensates IS NOT NULL
  ORDER BY b.compensates, b.requested_at DESC, b.action_id DESC
)
SELECT count(*),
  count(*) FILTER (WHERE c.latest_policy = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_policy = 'NOT_VERIFIED'),
  count(*) FILTER (WHERE c.latest_policy = 'UNVERIFIABLE'),
  count(*) FILTER (WHERE c.latest_status = 'pending'),
  count(*) FILTER (WHERE k.settled_policy = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_seq IS NULL)
FROM claims c LEFT JOIN corrected k ON k.action_id = c.action_id
WHERE c.tenant_id = $1
  AND ($2 = '' OR ($2 = 'PENDING' AND c.latest_status = 'pending') OR ($2 = 'COMPENSATED' AND k.settled_policy = 'VERIFIED')
    OR ($2 NOT IN ('PENDING', 'COMPENSATED') AND c.latest_policy = $8))
  AND ($3 = '' OR c.contract_id = $3) AND ($4 = '' OR c.agent_id = $4) AND ($5 = '' OR c.subject_id = $5)
  AND ($6 = '' OR c.trace_id = $6) AND ($7 = '' OR c.workflow_id = $7)
  AND ($9::bigint IS NULL OR c.requested_at >= $9) AND ($10::bigint IS NULL OR c.requested_at < $10);

-- name: Compensations
SELECT DISTINCT ON (c.compensates) c.compensates, c.settled_policy,
  c.claim_id, c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type,
  c.subject_id, c.subject_kind, c.requested_at, c.params::text, c.channel, c.compensates, c.trace_id, c.span_id,
  c.session_id, c.reference_id, c.tool, c.reported_outcome,
  c.recorded_at, CASE WHEN d.parked_at IS NULL THEN d.due_at END, d.parked_error,
  r.seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.computed_at, r.triggered_by, r.status, r.headline,
  r.report::text, r.next_check_at, r.events, r.previous_seq, r.changed,
  o.seq, o.raw_verdict, o.reasons, o.verdict_hash, o.chain_hash, o.document,
  p.raw_verdict, p.reasons, p.verdict_hash, p.chain_hash, coalesce(left(o.document, p.shared), '') || p.document
FROM claims c
LEFT JOIN due d ON d.tenant_id = $1 AND d.claim_id = c.claim_id
LEFT JOIN runs r ON r.tenant_id = $1 AND r.seq = c.latest_seq
LEFT JOIN verdicts o ON o.tenant_id = $1 AND o.seq = r.outcome_seq
LEFT JOIN verdicts p ON p.tenant_id = $1 AND p.seq = r.seq
WHERE c.tenant_id = $1 AND c.compensates = ANY ($2::text[])
ORDER BY c.compensates, c.requested_at DESC, c.action_id DESC;
