-- name: CreateKey
INSERT INTO api_keys (tenant_id, key_id, role, prefix, hash, sources, created_at, expires_at, revoked_at, last_used_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- Looks across tenants.
-- name: KeyByHash
SELECT tenant_id, key_id, role, prefix, hash, sources, created_at, expires_at, revoked_at, last_used_at FROM api_keys WHERE hash = ?1;

-- name: ListKeys
SELECT tenant_id, key_id, role, prefix, hash, sources, created_at, expires_at, revoked_at, last_used_at FROM api_keys
WHERE tenant_id = ?1 ORDER BY created_at, key_id;

-- name: KeyByID
SELECT tenant_id, key_id, role, prefix, hash, sources, created_at, expires_at, revoked_at, last_used_at FROM api_keys
WHERE tenant_id = ?1 AND key_id = ?2;

-- Looks across tenants.
-- name: AnyKey
SELECT EXISTS (SELECT 1 FROM api_keys k WHERE k.role IN (SELECT value FROM json_each(?1)) AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?2));

-- A key that was revoked keeps the time of the first revocation.
-- name: RevokeKey
UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?3) WHERE tenant_id = ?1 AND key_id = ?2;

-- A key that expires earlier keeps its time.
-- name: ExpireKey
UPDATE api_keys SET expires_at = min(coalesce(expires_at, ?3), ?3) WHERE tenant_id = ?1 AND key_id = ?2;

-- Looks across tenants, for the keys that were used.
-- name: TouchKeys
UPDATE api_keys SET last_used_at = j.value ->> 2 FROM jsonb_each(?1) j
WHERE api_keys.tenant_id = j.value ->> 0 AND api_keys.key_id = j.value ->> 1 AND coalesce(api_keys.last_used_at, -1) < j.value ->> 2;
