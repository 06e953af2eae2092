-- The head of the chain is locked by the caller.
-- name: AddParkings
INSERT INTO parkings (tenant_id, seq, n, claim_id, parked_at, error)
SELECT $1, $2, coalesce((SELECT max(k.n) FROM parkings k WHERE k.tenant_id = $1 AND k.seq = $2), 15) + n.place, n.claim_id, $3, n.error
FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS n(claim_id, error, place);

-- name: EventHead
SELECT h.seq, coalesce((SELECT max(k.n) FROM parkings k WHERE k.tenant_id = $1 AND k.seq = h.seq), 15)
FROM chain_heads h WHERE h.tenant_id = $1;

-- Runs and parked work in one sequence. A run's events stand in its row.
-- name: ReadEvents
SELECT e.seq, e.n, e.claim_id, e.contract_id, e.contract_version, e.at, e.status, e.headline, e.events, e.error,
  c.action_id, c.contract_id, c.contract_version, c.agent_id, c.workflow_id, c.subject_id, c.compensates, c.trace_id, c.span_id,
  o.raw_verdict, o.reasons, o.verdict_hash, p.raw_verdict, p.reasons, p.verdict_hash
FROM (
  (SELECT r.seq, 0 AS n, r.claim_id, r.contract_id, r.contract_version, r.computed_at AS at, r.status, r.headline, r.events, r.outcome_seq, NULL AS error
    FROM runs r WHERE r.tenant_id = $1 AND r.seq >= $2 ORDER BY r.seq LIMIT $4)
  UNION ALL
  (SELECT k.seq, k.n, k.claim_id, NULL, NULL, k.parked_at, '', '', NULL, NULL, k.error
    FROM parkings k WHERE k.tenant_id = $1 AND (k.seq, k.n) > ($2, $3) ORDER BY k.seq, k.n LIMIT $4)
  ORDER BY 1, 2
  LIMIT $4
) e
JOIN claims c ON c.tenant_id = $1 AND c.claim_id = e.claim_id
LEFT JOIN verdicts o ON o.tenant_id = $1 AND o.seq = e.outcome_seq
LEFT JOIN verdicts p ON p.tenant_id = $1 AND p.seq = e.seq AND e.outcome_seq IS NOT NULL
ORDER BY e.seq, e.n;

-- Old parkings, with whether they are needed: by an action that is still parked,
-- or to tell the place of the next one.
-- name: OldParkings
SELECT k.seq, k.n, k.seq >= coalesce((SELECT h.seq FROM chain_heads h WHERE h.tenant_id = $1), 0)
  OR EXISTS (SELECT FROM due d WHERE d.tenant_id = $1 AND d.claim_id = k.claim_id AND d.parked_at IS NOT NULL)
FROM parkings k
WHERE k.tenant_id = $1 AND (k.seq, k.n) > ($3, $4) AND k.parked_at < $2
ORDER BY k.seq, k.n LIMIT $5;

-- name: DropParkings
DELETE FROM parkings k USING unnest($2::bigint[], $3::integer[]) AS p(seq, n)
WHERE k.tenant_id = $1 AND k.seq = p.seq AND k.n = p.n;
