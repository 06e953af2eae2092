-- name: TallyContracts
WITH corrected AS (
  SELECT DISTINCT ON (b.compensates) b.compensates AS action_id, b.settled_policy
  FROM claims b
  WHERE b.tenant_id = $1 AND b.compensates IS NOT NULL
  ORDER BY b.compensates, b.requested_at DESC, b.action_id DESC
)
SELECT c.contract_id, c.requested_at - c.requested_at % $6::bigint AS at, count(*),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'NOT_VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'UNVERIFIABLE'),
  count(*) FILTER (WHERE c.latest_status = 'pending'),
  count(*) FILTER (WHERE c.latest_seq IS NULL),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy <> 'VERIFIED' AND k.settled_policy = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_outcome = 'NOT_VERIFIED' AND c.reported_outcome = 'success')
FROM claims c LEFT JOIN corrected k ON k.action_id = c.action_id
WHERE c.tenant_id = $1 AND c.requested_at >= $2 AND c.requested_at < $3
  AND ($4 = '' OR c.contract_id = $4) AND ($5 = '' OR c.agent_id = $5)
GROUP BY 1, 2 ORDER BY 1, 2;

-- name: TallyAgents
WITH corrected AS (
  SELECT DISTINCT ON (b.compensates) b.compensates AS action_id, b.settled_policy
  FROM claims b
  WHERE b.tenant_id = $1 AND b.compensates IS NOT NULL
  ORDER BY b.compensates, b.requested_at DESC, b.action_id DESC
)
SELECT coalesce(c.agent_id, ''), 0::bigint, count(*),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'NOT_VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'UNVERIFIABLE'),
  count(*) FILTER (WHERE c.latest_status = 'pending'),
  count(*) FILTER (WHERE c.latest_seq IS NULL),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy <> 'VERIFIED' AND k.settled_policy = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_outcome = 'NOT_VERIFIED' AND c.reported_outcome = 'success')
FROM claims c LEFT JOIN corrected k ON k.action_id = c.action_id
WHERE c.tenant_id = $1 AND c.requested_at >= $2 AND c.requested_at < $3
  AND ($4 = '' OR c.contract_id = $4) AND ($5 = '' OR c.agent_id = $5)
GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT $6;

-- Each action of the newest runs has only one latest run, so none comes twice.
-- name: NewestFailures
WITH newest AS MATERIALIZED (
  SELECT n.seq, n.claim_id FROM runs n WHERE n.tenant_id = $1 ORDER BY n.seq DESC LIMIT $2
), failed AS MATERIALIZED (
  SELECT c.* FROM newest n JOIN claims c ON c.tenant_id = $1 AND c.claim_id = n.claim_id AND c.latest_seq = n.seq
  WHERE c.latest_policy = 'NOT_VERIFIED' AND c.latest_status = 'settled'
  ORDER BY n.seq DESC LIMIT $3
)
SELECT c.claim_id, c.action_id, c.contract_id, c.contract_version, c.workflow_id, c.agent_id, c.action_type,
  c.subject_id, c.subject_kind, c.requested_at, c.params::text, c.channel, c.compensates, c.trace_id, c.span_id,
  c.session_id, c.reference_id, c.tool, c.reported_outcome,
  c.recorded_at, CASE WHEN d.parked_at IS NULL THEN d.due_at END, d.parked_error,
  r.seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.computed_at, r.triggered_by, r.status, r.headline,
  r.report::text, r.next_check_at, r.events, r.previous_seq, r.changed,
  o.seq, o.raw_verdict, o.reasons, o.verdict_hash, o.chain_hash, o.document,
  p.raw_verdict, p.reasons, p.verdict_hash, p.chain_hash, coalesce(left(o.document, p.shared), '') || p.document
FROM failed c
LEFT JOIN due d ON d.tenant_id = $1 AND d.claim_id = c.claim_id
JOIN runs r ON r.tenant_id = $1 AND r.seq = c.latest_seq
JOIN verdicts o ON o.tenant_id = $1 AND o.seq = r.outcome_seq
JOIN verdicts p ON p.tenant_id = $1 AND p.seq = r.seq
ORDER BY c.latest_seq DESC;

-- name: CountReasons
SELECT reason, count(*)
FROM (SELECT c.latest_seq FROM claims c WHERE c.tenant_id = $1 AND c.contract_id = $2 ORDER BY c.requested_at DESC LIMIT $3) n
JOIN verdicts v ON v.tenant_id = $1 AND v.seq = n.latest_seq
CROSS JOIN unnest(v.reasons) AS reason
GROUP BY reason ORDER BY count(*) DESC, reason COLLATE "C";

-- name: ActionsByHash
SELECT DISTINCT v.claim_id FROM verdicts v
WHERE v.verdict_hash = $2 AND v.tenant_id = $1
ORDER BY v.claim_id LIMIT $3;

-- name: LinkedSubjects
SELECT l.linked_subject_id FROM subject_links l
WHERE l.tenant_id = $1 AND l.subject_id = $2 ORDER BY l.linked_subject_id LIMIT $3;

-- name: CaseFacts
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes::text
FROM facts f
WHERE f.tenant_id = $1
  AND f.subject_id IN (SELECT $2 UNION ALL SELECT l.linked_subject_id FROM subject_links l WHERE l.tenant_id = $1 AND l.subject_id = $2)
  AND f.occurred_at >= $3 AND f.occurred_at <= $4
ORDER BY f.occurred_at DESC, f.raw_ref DESC LIMIT $5;

-- name: RecentFacts
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes::text
FROM facts f
WHERE f.tenant_id = $1 AND f.occurred_at >= $2
ORDER BY f.occurred_at DESC, f.raw_ref DESC LIMIT $3;
