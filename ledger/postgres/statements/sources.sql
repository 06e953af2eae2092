-- name: WatermarksOfSources
SELECT s.source, s.watermark FROM sources s
WHERE s.tenant_id = $1 AND s.connection = $2 AND s.source = ANY ($3::text[]) AND s.watermark IS NOT NULL;

-- Creates connections and moves what only moves forward. A row that says it all
-- already is not touched, so that writers of one connection do not queue for it.
-- name: MeetConnections
INSERT INTO sources AS s (tenant_id, source, connection, trust, delivered, watermark)
SELECT $1, n.source, $2, n.trust, n.delivered, n.watermark
FROM unnest($3::text[], $4::smallint[], $5::smallint[], $6::bigint[]) AS n(source, trust, delivered, watermark)
WHERE NOT EXISTS (SELECT FROM sources k
  WHERE k.tenant_id = $1 AND k.source = n.source AND k.connection = $2
    AND k.delivered >= n.delivered AND (n.watermark IS NULL OR k.watermark >= n.watermark) AND k.trust > 0)
ORDER BY n.source
ON CONFLICT (tenant_id, source, connection) DO UPDATE
SET trust = CASE WHEN s.trust = 0 THEN excluded.trust ELSE s.trust END,
  delivered = greatest(s.delivered, excluded.delivered),
  watermark = greatest(s.watermark, excluded.watermark);

-- MeetConnections for the agent's side.
-- name: MeetAgent
SELECT countersign_meet_agent($1, $2);

-- name: SetConnection
INSERT INTO sources AS s (tenant_id, source, connection, health, trust, trust_override, clock_skew, watermark)
VALUES ($1, $2, $3, $4, coalesce($5, 0), coalesce($6, 0), coalesce($7, 0), $8)
ON CONFLICT (tenant_id, source, connection) DO UPDATE
SET health = CASE WHEN $9 THEN $4 ELSE s.health END, trust = coalesce($5, s.trust), trust_override = coalesce($6, s.trust_override),
  clock_skew = coalesce($7, s.clock_skew), watermark = greatest(s.watermark, excluded.watermark);

-- name: Connections
SELECT s.source, s.connection, coalesce(s.health, ''), s.trust, s.trust_override, s.delivered, s.watermark, s.clock_skew
FROM sources s
WHERE s.tenant_id = $1
ORDER BY s.source, s.connection;
