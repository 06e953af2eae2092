-- Makes actions due at a time. What is due already, neither leased nor parked, keeps its time and its trigger.
-- name: Wake
INSERT INTO due (tenant_id, claim_id, due_at, generation, triggered_by)
SELECT ?1, value ->> 0, ?3, 1, value ->> 1 FROM jsonb_each(?2)
WHERE true
ON CONFLICT (tenant_id, claim_id) DO UPDATE SET
  due_at = CASE WHEN lease_owner IS NULL AND parked_at IS NULL THEN min(due_at, excluded.due_at) ELSE excluded.due_at END,
  triggered_by = CASE WHEN lease_owner IS NULL AND parked_at IS NULL AND due_at <= excluded.due_at THEN triggered_by ELSE excluded.triggered_by END,
  generation = generation + 1, attempts = 0, parked_at = NULL, parked_error = NULL, made = 0;

-- The contract versions under which something waits.
-- name: DueContracts
SELECT DISTINCT c.contract_id, c.contract_version
FROM due d CROSS JOIN claims c ON c.tenant_id = d.tenant_id AND c.claim_id = d.claim_id
WHERE d.tenant_id = ?1
ORDER BY c.contract_id, c.contract_version;

-- Wakes what has a due row and is pinned to one of some contract versions.
-- name: WakeContracts
UPDATE due SET
  due_at = CASE WHEN lease_owner IS NULL AND parked_at IS NULL THEN min(due_at, ?3) ELSE ?3 END,
  triggered_by = CASE WHEN lease_owner IS NULL AND parked_at IS NULL AND due_at <= ?3 THEN triggered_by ELSE 'recheck' END,
  generation = generation + 1, attempts = 0, parked_at = NULL, parked_error = NULL, made = 0
WHERE tenant_id = ?1 AND (SELECT (c.contract_id, c.contract_version) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(?2))
  FROM claims c WHERE c.tenant_id = ?1 AND c.claim_id = due.claim_id);

-- Looks across tenants.
-- name: DueTenants
SELECT t.tenant_id FROM tenants t
WHERE EXISTS (
  SELECT 1 FROM due d
  WHERE d.tenant_id = t.tenant_id AND d.parked_at IS NULL AND d.due_at <= ?1 AND (d.lease_owner IS NULL OR d.lease_until <= ?1))
ORDER BY t.tenant_id LIMIT ?2;

-- name: LeaseDue
UPDATE due SET lease_owner = ?2, lease_until = ?4, attempts = attempts + 1
WHERE tenant_id = ?1 AND claim_id IN (
  SELECT d.claim_id FROM due d
  WHERE d.tenant_id = ?1 AND d.parked_at IS NULL AND d.due_at <= ?3 AND (d.lease_owner IS NULL OR d.lease_until <= ?3)
  ORDER BY d.due_at, d.claim_id LIMIT ?5)
RETURNING claim_id, due_at, generation, triggered_by, attempts, made;

-- A row for named actions that have none, due when the lease is taken: if its owner is killed, the work is done all the same.
-- name: MakeDue
INSERT INTO due (tenant_id, claim_id, due_at, generation, triggered_by, made)
SELECT c.tenant_id, c.claim_id, ?3, 1, 'manual', 1 FROM claims c
WHERE c.tenant_id = ?1 AND c.claim_id IN (SELECT value FROM json_each(?2))
ON CONFLICT DO NOTHING;

-- name: LeaseActions
UPDATE due SET lease_owner = ?2, lease_until = ?4, attempts = attempts + 1
WHERE tenant_id = ?1 AND claim_id IN (SELECT value FROM json_each(?5)) AND (lease_owner IS NULL OR lease_until <= ?3)
RETURNING claim_id, due_at, generation, 'manual', attempts, made;

-- name: ContractsOfClaims
SELECT c.claim_id, c.contract_id, c.contract_version FROM claims c
WHERE c.tenant_id = ?1 AND c.claim_id IN (SELECT value FROM json_each(?2));

-- Rows that LeaseActions made and nothing woke.
-- name: RemoveMade
DELETE FROM due
WHERE tenant_id = ?1 AND lease_owner = ?2 AND made = 1
  AND (claim_id, generation) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(?3));

-- name: Release
UPDATE due SET lease_owner = NULL, lease_until = NULL
WHERE tenant_id = ?1 AND lease_owner = ?2 AND claim_id IN (SELECT value ->> 0 FROM jsonb_each(?3));

-- name: LeasesOf
SELECT claim_id, lease_owner, generation FROM due
WHERE tenant_id = ?1 AND claim_id IN (SELECT value FROM json_each(?2));

-- Settled and not woken since: nothing is due any more.
-- name: FinishDue
DELETE FROM due WHERE tenant_id = ?1 AND claim_id IN (SELECT value FROM json_each(?2));

-- name: ScheduleDue
INSERT INTO due (tenant_id, claim_id, due_at, generation, triggered_by)
SELECT ?1, value ->> 0, value ->> 1, 1, 'recheck' FROM jsonb_each(?2)
WHERE true
ON CONFLICT (tenant_id, claim_id) DO UPDATE SET
  due_at = excluded.due_at, triggered_by = excluded.triggered_by, attempts = 0, made = 0,
  lease_owner = NULL, lease_until = NULL, parked_at = NULL, parked_error = NULL;

-- Woken since it was leased: it stays due, for the next lease.
-- name: KeepDue
UPDATE due SET lease_owner = NULL, lease_until = NULL, attempts = 0
WHERE tenant_id = ?1 AND claim_id IN (SELECT value FROM json_each(?2));

-- name: Park
UPDATE due SET parked_at = ?3, parked_error = j.value ->> 2, lease_owner = NULL, lease_until = NULL
FROM jsonb_each(?4) j
WHERE due.tenant_id = ?1 AND due.lease_owner = ?2 AND due.claim_id = j.value ->> 0 AND due.generation = j.value ->> 1
RETURNING claim_id;

-- name: ParkedActions
SELECT d.claim_id, c.contract_id, c.contract_version, d.due_at, d.generation, d.triggered_by, d.attempts, d.made, c.action_id, d.parked_error, d.parked_at
FROM due d CROSS JOIN claims c ON c.tenant_id = d.tenant_id AND c.claim_id = d.claim_id
WHERE d.tenant_id = ?1 AND d.parked_at IS NOT NULL
ORDER BY d.parked_at DESC, d.claim_id LIMIT ?2;
