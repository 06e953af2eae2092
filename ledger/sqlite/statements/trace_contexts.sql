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
