-- For a distributed PostgreSQL (Citus).

-- name: CitusInstalled
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus');

-- name: IsDistributed
SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = $1::text::regclass);

-- name: DistributeTable
SELECT create_distributed_table($1::text::regclass, 'tenant_id');

-- name: ReferenceTable
SELECT create_reference_table($1::text::regclass);
