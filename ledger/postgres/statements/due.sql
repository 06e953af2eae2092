-- Waking a row: what is due already, neither leased nor parked, keeps its time
-- and its trigger; everything else is due at the given time. A lease that is
-- under way meets the new generation when it ends, and the row then stays due. Rows
-- are locked in the order of their ids.

-- Makes a row due, or wakes it.
-- name: Wake
INSERT INTO due AS d (tenant_id, claim_id, due_at, generation, triggered_by)
SELECT $1, n.claim_id, $3, 1, n.triggered_by
FROM unnest($2::text[], $4::text[]) AS n(claim_id, triggered_by)
ORDER BY n.claim_id
ON CONFLICT (tenant_id, claim_id) DO UPDATE
SET due_at = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL THEN least(d.due_at, excluded.due_at) ELSE excluded.due_at END,
  triggered_by = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL AND d.due_at <= excluded.due_at THEN d.triggered_by ELSE excluded.triggered_by END,
  generation = d.generation + 1, attempts = 0, parked_at = NULL, parked_error = NULL, made = false;

-- Wakes what has a due row and is about one of the subjects, or about one that
-- is linked to it (decision D16). An order key is that of the subject's earliest
-- new fact, NULL for a subject that got a link alone.
-- name: WakeSubjects
WITH touched AS (
  SELECT n.subject_id, n.order_key FROM unnest($3::text[], $4::text[]) AS n(subject_id, order_key)
), reached AS (
  SELECT t.subject_id, t.order_key FROM touched t
  UNION ALL
  SELECT l.linked_subject_id, t.order_key
  FROM touched t JOIN subject_links l ON l.tenant_id = $1 AND l.subject_id = t.subject_id
), concerned AS (
  SELECT c.claim_id, min(r.order_key COLLATE "C") AS order_key
  FROM reached r JOIN claims c ON c.tenant_id = $1 AND c.subject_id = r.subject_id
  GROUP BY c.claim_id
), locked AS MATERIALIZED (
  SELECT d.claim_id, coalesce('fact:' || substr(x.order_key, 13), 'recheck') AS triggered_by
  FROM concerned x JOIN due d ON d.tenant_id = $1 AND d.claim_id = x.claim_id
  ORDER BY d.claim_id
  FOR UPDATE OF d
)
UPDATE due d
SET due_at = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL THEN least(d.due_at, $2) ELSE $2 END,
  triggered_by = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL AND d.due_at <= $2 THEN d.triggered_by ELSE k.triggered_by END,
  generation = d.generation + 1, attempts = 0, parked_at = NULL, parked_error = NULL, made = false
FROM locked k
WHERE d.tenant_id = $1 AND d.claim_id = k.claim_id
RETURNING d.claim_id;

-- Wakes verified actions that one of some facts undoes, or a known fact that one
-- of some new links brings near (AC "reversal_observed"), making a due row where
-- the action had settled.
-- name: WakeReversed
WITH near AS (
  SELECT n.subject_id, n.raw_ref, n.source, n.fact_type, n.occurred_at
  FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[]) AS n(raw_ref, subject_id, source, fact_type, occurred_at)
  UNION ALL
  SELECT l.linked_subject_id, n.raw_ref, n.source, n.fact_type, n.occurred_at
  FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[]) AS n(raw_ref, subject_id, source, fact_type, occurred_at)
  JOIN subject_links l ON l.tenant_id = $1 AND l.subject_id = n.subject_id
  UNION ALL
  SELECT k.subject_id, f.raw_ref, f.source, f.fact_type, f.occurred_at
  FROM unnest($8::text[], $9::text[]) AS k(subject_id, linked_subject_id)
  JOIN facts f ON f.tenant_id = $1 AND f.subject_id = k.linked_subject_id
  WHERE f.fact_type IN (SELECT v.fact_type FROM contract_reversals v)
), skews AS (
  SELECT s.source, max(s.clock_skew) AS clock_skew FROM sources s WHERE s.tenant_id = $1 GROUP BY s.source
), undone AS (
  SELECT c.claim_id, min((lpad(n.occurred_at::text, 12, '0') || n.raw_ref) COLLATE "C") AS order_key
  FROM near n
  JOIN claims c ON c.tenant_id = $1 AND c.subject_id = n.subject_id
  JOIN contract_reversals v ON v.contract_id = c.contract_id AND v.version = c.contract_version
    AND v.fact_type = n.fact_type AND (v.source IS NULL OR v.source = n.source)
  LEFT JOIN skews k ON k.source = n.source
  WHERE c.latest_seq IS NOT NULL
    AND n.occurred_at >= c.requested_at - coalesce(k.clock_skew, 0) AND n.occurred_at <= c.requested_at + v.within_seconds
  GROUP BY c.claim_id
)
INSERT INTO due AS d (tenant_id, claim_id, due_at, generation, triggered_by)
SELECT $1, u.claim_id, $2, 1, 'fact:' || substr(u.order_key, 13) FROM undone u ORDER BY u.claim_id
ON CONFLICT (tenant_id, claim_id) DO UPDATE
SET due_at = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL THEN least(d.due_at, excluded.due_at) ELSE excluded.due_at END,
  triggered_by = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL AND d.due_at <= excluded.due_at THEN d.triggered_by ELSE excluded.triggered_by END,
  generation = d.generation + 1, attempts = 0, parked_at = NULL, parked_error = NULL, made = false
RETURNING d.claim_id;

-- Wakes actions whose window closes after the old watermark of a source that
-- their contract reads, and not after the new one: before that the watermark
-- settles nothing, and after that it is known.
-- name: WakeReaders
WITH closing AS MATERIALIZED (
  SELECT k.contract_id, k.version, coalesce(m.before, 0) - k.window_seconds AS after, m.after - k.window_seconds AS until
  FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS m(source, before, after)
  JOIN contract_sources s ON s.source = m.source
  JOIN contracts k ON k.contract_id = s.contract_id AND k.version = s.version
), awaiting AS (
  SELECT DISTINCT x.claim_id
  FROM closing w CROSS JOIN LATERAL (
    SELECT c.claim_id FROM claims c
    WHERE c.tenant_id = $1 AND c.contract_id = w.contract_id AND c.contract_version = w.version
      AND c.requested_at > w.after AND c.requested_at <= w.until
    OFFSET 0 -- a look-up per closing interval, not a join with all that the tenant has
  ) x
), locked AS MATERIALIZED (
  SELECT d.claim_id
  FROM awaiting a JOIN due d ON d.tenant_id = $1 AND d.claim_id = a.claim_id
  ORDER BY d.claim_id
  FOR UPDATE OF d
)
UPDATE due d
SET due_at = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL THEN least(d.due_at, $2) ELSE $2 END,
  triggered_by = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL AND d.due_at <= $2 THEN d.triggered_by ELSE 'recheck' END,
  generation = d.generation + 1, attempts = 0, parked_at = NULL, parked_error = NULL, made = false
FROM locked k
WHERE d.tenant_id = $1 AND d.claim_id = k.claim_id
RETURNING d.claim_id;

-- The contract versions under which something waits.
-- name: DueContracts
SELECT DISTINCT c.contract_id, c.contract_version
FROM due d CROSS JOIN LATERAL (
  SELECT c.contract_id, c.contract_version FROM claims c
  WHERE c.tenant_id = $1 AND c.claim_id = d.claim_id
  OFFSET 0 -- a look-up per row that waits, not a walk through all that the tenant has
) c
WHERE d.tenant_id = $1
ORDER BY c.contract_id, c.contract_version;

-- Wakes what has a due row and is pinned to one of some contract versions.
-- name: WakeContracts
WITH locked AS MATERIALIZED (
  SELECT d.claim_id
  FROM due d CROSS JOIN LATERAL (
    SELECT c.contract_id, c.contract_version FROM claims c
    WHERE c.tenant_id = $1 AND c.claim_id = d.claim_id
    OFFSET 0
  ) c JOIN unnest($3::text[], $4::integer[]) AS n(contract_id, version) ON n.contract_id = c.contract_id AND n.version = c.contract_version
  WHERE d.tenant_id = $1
  ORDER BY d.claim_id
  FOR UPDATE OF d
)
UPDATE due d
SET due_at = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL THEN least(d.due_at, $2) ELSE $2 END,
  triggered_by = CASE WHEN d.lease_owner IS NULL AND d.parked_at IS NULL AND d.due_at <= $2 THEN d.triggered_by ELSE 'recheck' END,
  generation = d.generation + 1, attempts = 0, parked_at = NULL, parked_error = NULL, made = false
FROM locked k
WHERE d.tenant_id = $1 AND d.claim_id = k.claim_id;

-- Across tenants, the one that waits longest first. Links to look at again are
-- work too, and come before any other.
-- name: DueTenants
SELECT t.tenant_id
FROM tenants t CROSS JOIN LATERAL (
  (SELECT d.due_at FROM due d
    WHERE d.tenant_id = t.tenant_id AND d.parked_at IS NULL AND d.due_at <= $1 AND (d.lease_until IS NULL OR d.lease_until <= $1)
    ORDER BY d.due_at LIMIT 1)
  UNION ALL
  SELECT 0 WHERE EXISTS (SELECT FROM new_links n WHERE n.tenant_id = t.tenant_id)
  ORDER BY 1 LIMIT 1
) oldest
ORDER BY oldest.due_at, t.tenant_id
LIMIT $2;

-- Lets a transaction that leases work end before it is on disk: a crash of the
-- server gives the work back, and who stores a verdict has to hold its lease still.
-- name: CommitSoon
SELECT set_config('synchronous_commit', 'off', true);

-- name: LeaseDue
WITH leased AS (
  UPDATE due d
  SET lease_owner = $3, lease_until = $4, attempts = d.attempts + 1
  WHERE d.tenant_id = $1 AND d.claim_id = ANY (ARRAY (
    SELECT w.claim_id FROM due w
    WHERE w.tenant_id = $1 AND w.parked_at IS NULL AND w.due_at <= $2 AND (w.lease_until IS NULL OR w.lease_until <= $2)
    ORDER BY w.due_at, w.claim_id
    LIMIT $5
    FOR UPDATE SKIP LOCKED))
  RETURNING d.claim_id, d.due_at, d.generation, d.triggered_by, d.attempts, d.made
)
SELECT l.claim_id, c.contract_id, c.contract_version, l.due_at, l.generation, l.triggered_by, l.attempts, l.made,
  c.trace_id IS NOT NULL AND c.started_nanos IS NOT NULL AND c.latest_status IS DISTINCT FROM 'settled'
    AND (c.agent_id IS NULL OR c.agent_completed OR c.session_id IS NULL OR c.session_completed)
FROM leased l JOIN claims c ON c.tenant_id = $1 AND c.claim_id = l.claim_id;

-- name: LeaseActions
WITH leased AS (
  INSERT INTO due AS d (tenant_id, claim_id, due_at, generation, triggered_by, attempts, lease_owner, lease_until, made)
  SELECT $1, c.claim_id, $2, 1, 'manual', 1, $3, $4, true
  FROM claims c
  WHERE c.tenant_id = $1 AND c.claim_id = ANY ($5::text[])
  ORDER BY c.claim_id
  ON CONFLICT (tenant_id, claim_id) DO UPDATE
  SET lease_owner = excluded.lease_owner, lease_until = excluded.lease_until, attempts = d.attempts + 1
  WHERE d.lease_until IS NULL OR d.lease_until <= $2
  RETURNING d.claim_id, d.due_at, d.generation, d.attempts, d.made
)
SELECT l.claim_id, c.contract_id, c.contract_version, l.due_at, l.generation, 'manual', l.attempts, l.made,
  c.trace_id IS NOT NULL AND c.started_nanos IS NOT NULL AND c.latest_status IS DISTINCT FROM 'settled'
    AND (c.agent_id IS NULL OR c.agent_completed OR c.session_id IS NULL OR c.session_completed)
FROM leased l JOIN claims c ON c.tenant_id = $1 AND c.claim_id = l.claim_id;

-- A row that LeaseActions made goes, unless it was woken meanwhile.
-- name: RemoveMade
DELETE FROM due d
USING unnest($3::text[], $4::bigint[]) AS n(claim_id, generation)
WHERE d.tenant_id = $1 AND d.claim_id = n.claim_id AND d.lease_owner = $2 AND d.made AND d.generation = n.generation;

-- name: Release
UPDATE due d
SET lease_owner = NULL, lease_until = NULL
WHERE d.tenant_id = $1 AND d.lease_owner = $2 AND d.claim_id = ANY ($3::text[]);

-- The leases under which runs are to be stored, locked.
-- name: LeasesOf
SELECT d.claim_id
FROM due d JOIN unnest($2::text[], $3::text[]) AS n(claim_id, lease_owner) ON n.claim_id = d.claim_id AND n.lease_owner = d.lease_owner
WHERE d.tenant_id = $1
ORDER BY d.claim_id
FOR UPDATE OF d;

-- Done work: a check to come is due then, what was woken meanwhile stays due at
-- its new time, and the rest is removed by FinishDue.
-- name: ScheduleDue
UPDATE due d
SET due_at = CASE WHEN d.generation <> n.generation THEN d.due_at ELSE n.next_check_at END,
  triggered_by = CASE WHEN d.generation <> n.generation THEN d.triggered_by ELSE 'recheck' END,
  attempts = 0, lease_owner = NULL, lease_until = NULL, parked_at = NULL, parked_error = NULL, made = false
FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS n(claim_id, generation, next_check_at)
WHERE d.tenant_id = $1 AND d.claim_id = n.claim_id AND (d.generation <> n.generation OR n.next_check_at IS NOT NULL);

-- name: FinishDue
DELETE FROM due d
USING unnest($2::text[], $3::bigint[]) AS n(claim_id, generation)
WHERE d.tenant_id = $1 AND d.claim_id = n.claim_id AND d.generation = n.generation;

-- After runs that were stored without a lease. What somebody holds, and what a
-- fact woke that the run may not have seen, stays as it is.
-- name: ScheduleUnleased
INSERT INTO due AS d (tenant_id, claim_id, due_at, generation, triggered_by)
SELECT $1, n.claim_id, n.next_check_at, 1, 'recheck'
FROM unnest($2::text[], $3::bigint[]) AS n(claim_id, next_check_at)
WHERE n.next_check_at IS NOT NULL
ORDER BY n.claim_id
ON CONFLICT (tenant_id, claim_id) DO UPDATE
SET due_at = excluded.due_at, triggered_by = excluded.triggered_by, attempts = 0, parked_at = NULL, parked_error = NULL, made = false
WHERE d.lease_owner IS NULL AND d.triggered_by NOT LIKE 'fact:%';

-- name: FinishUnleased
DELETE FROM due d
USING unnest($2::text[], $3::bigint[]) AS n(claim_id, next_check_at)
WHERE d.tenant_id = $1 AND d.claim_id = n.claim_id AND n.next_check_at IS NULL
  AND d.lease_owner IS NULL AND d.triggered_by NOT LIKE 'fact:%';

-- name: Park
UPDATE due d
SET parked_at = $3, parked_error = n.error, lease_owner = NULL, lease_until = NULL
FROM unnest($4::text[], $5::bigint[], $6::text[]) AS n(claim_id, generation, error)
WHERE d.tenant_id = $1 AND d.claim_id = n.claim_id AND d.lease_owner = $2 AND d.generation = n.generation
RETURNING d.claim_id;

-- What a new fact woke while it was being found unworkable gets another try.
-- name: ReleaseWoken
UPDATE due d
SET lease_owner = NULL, lease_until = NULL
FROM unnest($3::text[], $4::bigint[]) AS n(claim_id, generation)
WHERE d.tenant_id = $1 AND d.claim_id = n.claim_id AND d.lease_owner = $2 AND d.generation <> n.generation;

-- name: ParkedActions
SELECT d.claim_id, c.contract_id, c.contract_version, d.due_at, d.generation, d.triggered_by, d.attempts, d.made,
  c.action_id, d.parked_error, d.parked_at
FROM due d JOIN claims c ON c.tenant_id = $1 AND c.claim_id = d.claim_id
WHERE d.tenant_id = $1 AND d.parked_at IS NOT NULL
ORDER BY d.parked_at DESC, d.claim_id
LIMIT $2;
