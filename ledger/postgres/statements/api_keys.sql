-- name: CreateKey
INSERT INTO api_keys (tenant_id, key_id, role, prefix, hash, sources, created_at, expires_at, revoked_at, last_used_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- Across tenants.
-- name: KeyByHash
SELECT k.tenant_id, k.key_id, k.role, k.prefix, k.hash, k.sources, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
FROM api_keys k
WHERE k.hash = $1
ORDER BY k.tenant_id, k.key_id
LIMIT 1;

-- name: ListKeys
SELECT k.tenant_id, k.key_id, k.role, k.prefix, k.hash, k.sources, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
FROM api_keys k
WHERE k.tenant_id = $1
ORDER BY k.created_at, k.key_id;

-- name: KeyByID
SELECT k.tenant_id, k.key_id, k.role, k.prefix, k.hash, k.sources, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
FROM api_keys k
WHERE k.tenant_id = $1 AND k.key_id = $2;

-- Across tenants.
-- name: AnyKey
SELECT EXISTS (SELECT FROM api_keys k WHERE k.role = ANY ($1::text[]) AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2));

-- name: RevokeKey
UPDATE api_keys SET revoked_at = coalesce(revoked_at, $3) WHERE tenant_id = $1 AND key_id = $2;

-- A key that expires earlier keeps its time.
-- name: ExpireKey
UPDATE api_keys SET expires_at = least(coalesce(expires_at, $3), $3) WHERE tenant_id = $1 AND key_id = $2;

-- name: TouchKeys
UPDATE api_keys k
SET last_used_at = greatest(k.last_used_at, n.used_at)
FROM unnest($2::text[], $3::bigint[]) AS n(key_id, used_at)
WHERE k.tenant_id = $1 AND k.key_id = n.key_id;
