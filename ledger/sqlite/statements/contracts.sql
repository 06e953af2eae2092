-- name: ContractHashes
SELECT k.contract_id, k.version, k.hash FROM jsonb_each(?1) j
CROSS JOIN contracts k ON k.contract_id = j.value ->> 0 AND k.version = j.value ->> 1;

-- name: PublishContracts
INSERT INTO contracts (contract_id, version, hash, document, window_seconds, held_fields, published_at)
SELECT value ->> 0, value ->> 1, value ->> 2, unhex(value ->> 3), value ->> 4, value ->> 5, ?2 FROM jsonb_each(?1)
WHERE true
ON CONFLICT DO NOTHING;

-- name: PublishReversals
INSERT INTO contract_reversals (contract_id, version, position, source, fact_type, within_seconds)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM jsonb_each(?1)
WHERE true
ON CONFLICT DO NOTHING;

-- name: PublishSources
INSERT INTO contract_sources (contract_id, version, source)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(?1)
WHERE true
ON CONFLICT DO NOTHING;

-- Version 0 is the latest.
-- name: ContractVersions
SELECT DISTINCT k.contract_id, k.version, k.hash, k.document, k.published_at FROM jsonb_each(?1) j
CROSS JOIN contracts k ON k.contract_id = j.value ->> 0
  AND k.version = CASE WHEN j.value ->> 1 = 0 THEN (SELECT max(n.version) FROM contracts n WHERE n.contract_id = j.value ->> 0) ELSE j.value ->> 1 END
ORDER BY k.contract_id, k.version;

-- All versions of one id, or the latest of every id when ?1 is empty.
-- name: ListContracts
SELECT k.contract_id, k.version, k.hash, k.document, k.published_at FROM contracts k
WHERE k.contract_id = ?1 OR (?1 = '' AND k.version = (SELECT max(n.version) FROM contracts n WHERE n.contract_id = k.contract_id))
ORDER BY k.contract_id, k.version;
