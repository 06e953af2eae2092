-- name: AppendVerdicts
INSERT INTO verdicts (tenant_id, seq, claim_id, lens, raw_verdict, reasons, verdict_hash, chain_hash, document)
SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, unhex(value ->> 5), unhex(value ->> 6), value ->> 7
FROM jsonb_each(?2);

-- Looks across tenants. The run of an outcome verdict has the seq after it.
-- name: VerdictByHash
SELECT v.verdict_hash, v.raw_verdict, v.lens, r.contract_id, r.contract_version, r.computed_at
FROM verdicts v JOIN runs r ON r.tenant_id = v.tenant_id AND r.seq = v.seq + (v.lens = 'outcome')
WHERE v.verdict_hash = ?1
ORDER BY r.computed_at, v.seq LIMIT 1;

-- name: ReadChain
SELECT v.seq, v.claim_id, v.lens, v.raw_verdict, v.reasons, v.verdict_hash, v.chain_hash, v.document FROM verdicts v
WHERE v.tenant_id = ?1 AND v.seq > ?2 ORDER BY v.seq LIMIT ?3;
