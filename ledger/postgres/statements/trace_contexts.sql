-- The first one under a span id stands.
-- name: RecordContexts
INSERT INTO trace_contexts (tenant_id, trace_id, span_id, start_nanos, end_nanos, agent, session, recorded_at)
SELECT $1, n.trace_id, n.span_id, n.start_nanos, n.end_nanos, n.agent, n.session, $2
FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[])
  AS n(trace_id, span_id, start_nanos, end_nanos, agent, session)
ORDER BY n.trace_id, n.span_id
ON CONFLICT (tenant_id, trace_id, span_id) DO NOTHING;
