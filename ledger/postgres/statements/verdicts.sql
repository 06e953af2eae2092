-- name: ReadChain
SELECT v.seq, v.claim_id, v.lens, v.raw_verdict, v.reasons, v.verdict_hash, v.chain_hash, v.document
FROM verdict_documents v
WHERE v.tenant_id = $1 AND v.seq > $2
ORDER BY v.seq
LIMIT $3;

-- Across tenants. The hash covers the tenant, so all matches are of one; the first of them stands for all.
-- name: VerdictByHash
SELECT v.document, r.computed_at
FROM verdict_documents v JOIN runs r ON r.tenant_id = v.tenant_id AND v.seq IN (r.seq, r.outcome_seq) AND r.claim_id = v.claim_id
WHERE v.verdict_hash = $1
ORDER BY r.computed_at, v.seq
LIMIT 1;

-- A page of actions: how many, the last one, and the newest run of the first in
-- the chain whose latest or settled verdict is listed otherwise.
-- name: CheckLatest
WITH page AS MATERIALIZED (
  SELECT c.claim_id, c.latest_seq, c.latest_status, c.latest_outcome, c.latest_policy, c.settled_policy
  FROM claims c
  WHERE c.tenant_id = $1 AND c.claim_id > $2
  ORDER BY c.claim_id
  LIMIT $3
)
SELECT count(*), coalesce(max(p.claim_id), ''), coalesce(min(coalesce(n.seq, p.latest_seq, 1)) FILTER (WHERE
  p.latest_seq IS DISTINCT FROM n.seq OR p.latest_status IS DISTINCT FROM n.status OR p.latest_outcome IS DISTINCT FROM o.raw_verdict
  OR p.latest_policy IS DISTINCT FROM v.raw_verdict OR p.settled_policy IS DISTINCT FROM s.raw_verdict), 0)
FROM page p
LEFT JOIN LATERAL (SELECT r.seq, r.outcome_seq, r.status FROM runs r
  WHERE r.tenant_id = $1 AND r.claim_id = p.claim_id ORDER BY r.seq DESC LIMIT 1) n ON true
LEFT JOIN LATERAL (SELECT r.seq FROM runs r
  WHERE r.tenant_id = $1 AND r.claim_id = p.claim_id AND r.status = 'settled' ORDER BY r.seq DESC LIMIT 1) t ON true
LEFT JOIN verdicts o ON o.tenant_id = $1 AND o.seq = n.outcome_seq
LEFT JOIN verdicts v ON v.tenant_id = $1 AND v.seq = n.seq
LEFT JOIN verdicts s ON s.tenant_id = $1 AND s.seq = t.seq;
