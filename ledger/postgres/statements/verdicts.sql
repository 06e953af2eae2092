-- name: ReadChain
SELECT v.seq, v.claim_id, v.lens, v.raw_verdict, v.reasons, v.verdict_hash, v.chain_hash, v.document
FROM verdicts v
WHERE v.tenant_id = $1 AND v.seq > $2
ORDER BY v.seq
LIMIT $3;

-- Across tenants. The hash covers the tenant, so all matches are of one; the first of them stands for all.
-- name: VerdictByHash
SELECT v.raw_verdict, v.lens, r.contract_id, r.contract_version, r.computed_at
FROM verdicts v JOIN runs r ON r.tenant_id = v.tenant_id AND v.seq IN (r.seq, r.outcome_seq) AND r.claim_id = v.claim_id
WHERE v.verdict_hash = $1
ORDER BY r.computed_at, v.seq
LIMIT 1;
