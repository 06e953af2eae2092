-- name: AppendVerdicts
INSERT INTO verdicts (tenant_id, seq, claim_id, lens, raw_verdict, reasons, verdict_hash, chain_hash, document)
SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, unhex(value ->> 5), unhex(value ->> 6), value ->> 7
FROM jsonb_each(?2);

-- Looks across tenants. The run of an outcome verdict has the seq after it.
-- name: VerdictByHash
SELECT v.document, r.computed_at
FROM verdicts v JOIN runs r ON r.tenant_id = v.tenant_id AND r.seq = v.seq + (v.lens = 'outcome')
WHERE v.verdict_hash = ?1
ORDER BY r.computed_at, v.seq LIMIT 1;

-- name: ReadChain
SELECT v.seq, v.claim_id, v.lens, v.raw_verdict, v.reasons, v.verdict_hash, v.chain_hash, v.document FROM verdicts v
WHERE v.tenant_id = ?1 AND v.seq > ?2 ORDER BY v.seq LIMIT ?3;

-- A page of actions: how many, the last one, and the newest run of the first in
-- the chain whose latest or settled verdict is listed otherwise.
-- name: CheckLatest
WITH page AS MATERIALIZED (
  SELECT c.claim_id, c.latest_seq, c.latest_status, c.latest_outcome, c.latest_policy, c.settled_policy,
    (SELECT max(r.seq) FROM runs r WHERE r.tenant_id = ?1 AND r.claim_id = c.claim_id) AS newest,
    (SELECT max(r.seq) FROM runs r WHERE r.tenant_id = ?1 AND r.claim_id = c.claim_id AND r.status = 'settled') AS settled
  FROM claims c
  WHERE c.tenant_id = ?1 AND c.claim_id > ?2
  ORDER BY c.claim_id LIMIT ?3
)
SELECT count(*), coalesce(max(p.claim_id), ''), coalesce(min(coalesce(p.newest, p.latest_seq, 1)) FILTER (WHERE
  p.latest_seq IS NOT p.newest OR p.latest_status IS NOT n.status OR p.latest_outcome IS NOT o.raw_verdict
  OR p.latest_policy IS NOT v.raw_verdict OR p.settled_policy IS NOT s.raw_verdict), 0)
FROM page p
LEFT JOIN runs n ON n.tenant_id = ?1 AND n.seq = p.newest
LEFT JOIN verdicts o ON o.tenant_id = ?1 AND o.seq = n.outcome_seq
LEFT JOIN verdicts v ON v.tenant_id = ?1 AND v.seq = p.newest
LEFT JOIN verdicts s ON s.tenant_id = ?1 AND s.seq = p.settled;
