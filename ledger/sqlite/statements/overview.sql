-- name: TallyContracts
SELECT c.contract_id, c.requested_at - c.requested_at % ?6 AS at, count(*),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'NOT_VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'UNVERIFIABLE'),
  count(*) FILTER (WHERE c.latest_status = 'pending'),
  count(*) FILTER (WHERE c.latest_seq IS NULL),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy <> 'VERIFIED' AND c.compensation = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_outcome = 'NOT_VERIFIED' AND c.reported_outcome = 'success')
FROM compensated_claims c
WHERE c.tenant_id = ?1 AND c.requested_at >= ?2 AND c.requested_at < ?3
  AND (?4 IS NULL OR c.contract_id = ?4) AND (?5 IS NULL OR c.agent_id = ?5)
GROUP BY c.contract_id, at ORDER BY c.contract_id, at;

-- name: TallyAgents
SELECT coalesce(c.agent_id, '') AS agent, 0, count(*),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'NOT_VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy = 'UNVERIFIABLE'),
  count(*) FILTER (WHERE c.latest_status = 'pending'),
  count(*) FILTER (WHERE c.latest_seq IS NULL),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_policy <> 'VERIFIED' AND c.compensation = 'VERIFIED'),
  count(*) FILTER (WHERE c.latest_status = 'settled' AND c.latest_outcome = 'NOT_VERIFIED' AND c.reported_outcome = 'success')
FROM compensated_claims c
WHERE c.tenant_id = ?1 AND c.requested_at >= ?2 AND c.requested_at < ?3
  AND (?4 IS NULL OR c.contract_id = ?4) AND (?5 IS NULL OR c.agent_id = ?5)
GROUP BY agent ORDER BY count(*) DESC, agent LIMIT ?6;

-- Each action of the newest runs has only one latest run, so none comes twice.
-- name: NewestFailures
SELECT a.* FROM (SELECT r.seq, r.claim_id FROM runs r WHERE r.tenant_id = ?1 ORDER BY r.seq DESC LIMIT ?2) n
CROSS JOIN stored_actions a ON a.tenant_id = ?1 AND a.claim_id = n.claim_id AND a.latest_seq = n.seq
WHERE a.latest_policy = 'NOT_VERIFIED' AND a.latest_status = 'settled'
ORDER BY n.seq DESC LIMIT ?3;

-- name: CountReasons
SELECT j.value, count(*) AS actions
FROM (SELECT c.latest_seq FROM claims c WHERE c.tenant_id = ?1 AND c.contract_id = ?2 ORDER BY c.requested_at DESC LIMIT ?3) n
CROSS JOIN verdicts v ON v.tenant_id = ?1 AND v.seq = n.latest_seq
CROSS JOIN json_each(v.reasons) j
GROUP BY j.value ORDER BY actions DESC, j.value;

-- name: ActionsByHash
SELECT DISTINCT v.claim_id FROM verdicts v
WHERE v.verdict_hash = ?2 AND v.tenant_id = ?1
ORDER BY v.claim_id LIMIT ?3;

-- name: LinkedSubjects
SELECT l.linked_subject_id FROM subject_links l
WHERE l.tenant_id = ?1 AND l.subject_id = ?2 ORDER BY l.linked_subject_id LIMIT ?3;

-- name: CaseFacts
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes FROM facts f
WHERE f.tenant_id = ?1
  AND f.subject_id IN (SELECT ?2 UNION ALL SELECT l.linked_subject_id FROM subject_links l WHERE l.tenant_id = ?1 AND l.subject_id = ?2)
  AND f.occurred_at >= ?3 AND f.occurred_at <= ?4
ORDER BY f.occurred_at DESC, f.raw_ref DESC LIMIT ?5;

-- Of the facts that came last: those before them are not read.
-- name: RecentFacts
SELECT f.raw_ref, f.source, f.fact_type, f.subject_id, f.subject_kind, f.occurred_at, f.attributes FROM facts f NOT INDEXED
WHERE f.rowid > (SELECT coalesce(max(rowid), 0) FROM facts) - 10000 AND f.tenant_id = ?1 AND f.occurred_at >= ?2
ORDER BY f.occurred_at DESC, f.raw_ref DESC LIMIT ?3;
