-- name: RecordContexts
INSERT INTO trace_contexts (tenant_id, trace_id, span_id, start_nanos, end_nanos, agent, session, recorded_at)
SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, ?3
FROM jsonb_each(?2)
WHERE true
ON CONFLICT DO NOTHING;

-- The agent and the session of the contexts that contain an action's start and started last (decision D31).
-- name: FindContexts
SELECT a.value ->> 0,
  (SELECT x.agent FROM trace_contexts x
   WHERE x.tenant_id = ?1 AND x.trace_id = a.value ->> 1 AND x.start_nanos <= a.value ->> 2 AND x.end_nanos >= a.value ->> 2 AND x.agent IS NOT NULL
   ORDER BY x.start_nanos DESC, x.span_id DESC LIMIT 1),
  (SELECT x.session FROM trace_contexts x
   WHERE x.tenant_id = ?1 AND x.trace_id = a.value ->> 1 AND x.start_nanos <= a.value ->> 2 AND x.end_nanos >= a.value ->> 2 AND x.session IS NOT NULL
   ORDER BY x.start_nanos DESC, x.span_id DESC LIMIT 1)
FROM jsonb_each(?2) a;

-- Old contexts, with whether an action of their trace may still want them.
-- name: OldContexts
SELECT x.trace_id, x.span_id, EXISTS (SELECT 1 FROM claims c
  WHERE c.tenant_id = ?1 AND c.trace_id = x.trace_id AND (c.requested_at >= ?2 OR c.latest_status IS NOT 'settled'))
FROM trace_contexts x
WHERE x.tenant_id = ?1 AND (x.trace_id, x.span_id) > (?3, ?4) AND x.recorded_at < ?2
ORDER BY x.trace_id, x.span_id LIMIT ?5;

-- name: DropContexts
DELETE FROM trace_contexts WHERE tenant_id = ?1
  AND (trace_id, span_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?2));
