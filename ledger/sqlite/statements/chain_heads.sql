-- name: ChainHead
SELECT seq, chain_hash, run_hash FROM chain_heads WHERE tenant_id = ?1;

-- name: SetChainHead
INSERT INTO chain_heads (tenant_id, seq, chain_hash, run_hash) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant_id) DO UPDATE SET seq = excluded.seq, chain_hash = excluded.chain_hash, run_hash = excluded.run_hash;
