-- name: OwnTenant
INSERT INTO tenants (tenant_id, created_at)
SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM tenants WHERE tenant_id = $1)
ON CONFLICT (tenant_id) DO NOTHING;

-- Across tenants.
-- name: Tenants
SELECT tenant_id FROM tenants ORDER BY tenant_id;
