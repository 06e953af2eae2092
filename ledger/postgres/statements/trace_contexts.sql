-- The first one under a span id stands.
-- name: RecordContexts
INSERT INTO trace_contexts (tenant_id, trace_id, span_id, start_nanos, end_nanos, agent, session, recorded_at)
SELECT $1, n.trace_id, n.span_id, n.start_nanos, n.end_nanos, n.agent, n.session, $2
FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[])
  AS n(trace_id, span_id, start_nanos, end_nanos, agent, session)
ORDER BY n.trace_id, n.span_id
ON CONFLICT (tenant_id, trace_id, span_id) DO NOTHING;

-- Old contexts, with whether an action of their trace may still want them.
-- name: OldContexts
SELECT x.trace_id, x.span_id, coalesce((SELECT true FROM claims c
  WHERE c.tenant_id = $1 AND c.trace_id = x.trace_id AND (c.requested_at >= $2 OR c.latest_status IS DISTINCT FROM 'settled')
  LIMIT 1), false)
FROM trace_contexts x
WHERE x.tenant_id = $1 AND (x.trace_id, x.span_id) > ($3, $4) AND x.recorded_at < $2
ORDER BY x.trace_id, x.span_id
LIMIT $5;

-- name: DropContexts
DELETE FROM trace_contexts x
USING unnest($2::text[], $3::text[]) AS n(trace_id, span_id)
WHERE x.tenant_id = $1 AND x.trace_id = n.trace_id AND x.span_id = n.span_id;
