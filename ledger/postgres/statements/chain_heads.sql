-- name: StartChain
INSERT INTO chain_heads (tenant_id, seq, chain_hash)
SELECT $1, 0, $2 WHERE NOT EXISTS (SELECT FROM chain_heads WHERE tenant_id = $1)
ON CONFLICT (tenant_id) DO NOTHING;

-- Whoever appends to the chain of a tenant waits here for the one before.
-- name: LockChainHead
SELECT h.seq, h.chain_hash, h.run_hash FROM chain_heads h WHERE h.tenant_id = $1 FOR UPDATE;

-- name: SetChainHead
UPDATE chain_heads SET seq = $2, chain_hash = $3, run_hash = $4 WHERE tenant_id = $1;

-- name: ChainHead
SELECT h.seq, h.chain_hash, h.run_hash FROM chain_heads h WHERE h.tenant_id = $1;
