-- Contracts belong to all tenants.

-- name: ContractHashes
SELECT k.contract_id, k.version, k.hash
FROM contracts k JOIN unnest($1::text[], $2::integer[]) AS n(contract_id, version)
  ON k.contract_id = n.contract_id AND k.version = n.version;

-- name: PublishContracts
INSERT INTO contracts (contract_id, version, hash, document, window_seconds, held_fields, published_at)
SELECT n.contract_id, n.version, n.hash, n.document, n.window_seconds, n.held_fields, $1
FROM unnest($2::text[], $3::integer[], $4::text[], $5::bytea[], $6::bigint[], $7::text[])
  AS n(contract_id, version, hash, document, window_seconds, held_fields)
ORDER BY n.contract_id, n.version;

-- name: PublishReversals
INSERT INTO contract_reversals (contract_id, version, position, source, fact_type, within_seconds)
SELECT n.contract_id, n.version, n.position, n.source, n.fact_type, n.within_seconds
FROM unnest($1::text[], $2::integer[], $3::integer[], $4::text[], $5::text[], $6::bigint[])
  AS n(contract_id, version, position, source, fact_type, within_seconds);

-- name: PublishSources
INSERT INTO contract_sources (contract_id, version, source)
SELECT n.contract_id, n.version, n.source
FROM unnest($1::text[], $2::integer[], $3::text[]) AS n(contract_id, version, source);

-- Version 0 asks for the latest.
-- name: ContractVersions
SELECT k.contract_id, k.version, k.hash, k.document, k.published_at
FROM (
  SELECT DISTINCT n.contract_id,
    CASE WHEN n.version > 0 THEN n.version ELSE (SELECT max(l.version) FROM contracts l WHERE l.contract_id = n.contract_id) END AS version
  FROM unnest($1::text[], $2::integer[]) AS n(contract_id, version)
) w JOIN contracts k ON k.contract_id = w.contract_id AND k.version = w.version
ORDER BY k.contract_id, k.version;

-- All versions of one id, or the latest of each.
-- name: ListContracts
SELECT k.contract_id, k.version, k.hash, k.document, k.published_at
FROM contracts k
WHERE k.contract_id = $1
  OR ($1 = '' AND k.version = (SELECT max(l.version) FROM contracts l WHERE l.contract_id = k.contract_id))
ORDER BY k.contract_id, k.version;

-- Which of these fact types undo an action under some contract.
-- name: ReversalTypes
SELECT DISTINCT v.fact_type FROM contract_reversals v WHERE v.fact_type = ANY ($1::text[]);
