-- name: OwnTenant
INSERT INTO tenants (tenant_id, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING;

-- Looks across tenants.
-- name: Tenants
SELECT tenant_id FROM tenants ORDER BY tenant_id;
