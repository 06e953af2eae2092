-- A run is read together with its two verdicts:
-- the columns from seq to document are those of runColumns in Go.

-- name: LatestRuns
SELECT r.seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.computed_at, r.triggered_by, r.status, r.headline,
  r.report::text, r.next_check_at, r.events, r.previous_seq, r.changed,
  o.seq, o.raw_verdict, o.reasons, o.verdict_hash, o.chain_hash, o.document,
  p.raw_verdict, p.reasons, p.verdict_hash, p.chain_hash, coalesce(left(o.document, p.shared), '') || p.document
FROM claims c
JOIN runs r ON r.tenant_id = $1 AND r.seq = c.latest_seq
JOIN verdicts o ON o.tenant_id = $1 AND o.seq = r.outcome_seq
JOIN verdicts p ON p.tenant_id = $1 AND p.seq = r.seq
WHERE c.tenant_id = $1 AND c.claim_id = ANY ($2::text[]);

-- name: Runs
SELECT r.seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.computed_at, r.triggered_by, r.status, r.headline,
  r.report::text, r.next_check_at, r.events, r.previous_seq, r.changed,
  o.seq, o.raw_verdict, o.reasons, o.verdict_hash, o.chain_hash, o.document,
  p.raw_verdict, p.reasons, p.verdict_hash, p.chain_hash, coalesce(left(o.document, p.shared), '') || p.document
FROM runs r
JOIN verdicts o ON o.tenant_id = $1 AND o.seq = r.outcome_seq
JOIN verdicts p ON p.tenant_id = $1 AND p.seq = r.seq
WHERE r.tenant_id = $1 AND r.claim_id = $2
ORDER BY r.seq;

-- name: RunsBySeq
SELECT r.seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.computed_at, r.triggered_by, r.status, r.headline,
  r.report::text, r.next_check_at, r.events, r.previous_seq, r.changed,
  o.seq, o.raw_verdict, o.reasons, o.verdict_hash, o.chain_hash, o.document,
  p.raw_verdict, p.reasons, p.verdict_hash, p.chain_hash, coalesce(left(o.document, p.shared), '') || p.document
FROM runs r
JOIN verdicts o ON o.tenant_id = $1 AND o.seq = r.outcome_seq
JOIN verdicts p ON p.tenant_id = $1 AND p.seq = r.seq
WHERE r.tenant_id = $1 AND r.seq = ANY ($2::bigint[]);

-- name: ChainRuns
SELECT r.seq, r.outcome_seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.headline, coalesce(r.report::text, ''),
  r.computed_at, r.triggered_by, r.status, r.next_check_at, r.events, r.previous_seq, r.changed, r.evidence_hashes, r.report_hash, r.run_hash,
  coalesce(c.action_id, ''), coalesce(c.contract_id, ''), coalesce(c.contract_version, 0), coalesce(c.compensates, '')
FROM runs r LEFT JOIN claims c ON c.tenant_id = r.tenant_id AND c.claim_id = r.claim_id
WHERE r.tenant_id = $1 AND r.seq > $2
ORDER BY r.seq
LIMIT $3;
