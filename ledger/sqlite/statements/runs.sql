-- name: AppendRuns
INSERT INTO runs (tenant_id, seq, run_id, claim_id, contract_id, contract_version, computed_at, triggered_by, status, headline,
  outcome_seq, report, next_check_at, events, previous_seq, changed, evidence_hashes, report_hash, run_hash)
SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
  value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14,
  unhex(value ->> 15), unhex(value ->> 16), unhex(value ->> 17)
FROM jsonb_each(?2);

-- name: LatestRuns
SELECT r.* FROM claims c CROSS JOIN stored_runs r ON r.tenant_id = c.tenant_id AND r.seq = c.latest_seq
WHERE c.tenant_id = ?1 AND c.claim_id IN (SELECT value FROM json_each(?2));

-- name: Runs
SELECT r.* FROM stored_runs r WHERE r.tenant_id = ?1 AND r.claim_id = ?2 ORDER BY r.seq;

-- name: ChainRuns
SELECT r.seq, r.outcome_seq, r.run_id, r.claim_id, r.contract_id, r.contract_version, r.headline, coalesce(r.report, ''),
  r.computed_at, r.triggered_by, r.status, r.next_check_at, r.events, r.previous_seq, r.changed, r.evidence_hashes, r.report_hash, r.run_hash,
  coalesce(c.action_id, ''), coalesce(c.contract_id, ''), coalesce(c.contract_version, 0), coalesce(c.compensates, '')
FROM runs r LEFT JOIN claims c ON c.tenant_id = r.tenant_id AND c.claim_id = r.claim_id
WHERE r.tenant_id = ?1 AND r.seq > ?2 ORDER BY r.seq LIMIT ?3;

-- name: RunsAt
SELECT r.* FROM stored_runs r WHERE r.tenant_id = ?1 AND r.seq IN (SELECT value ->> 0 FROM jsonb_each(?2));
