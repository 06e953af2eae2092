-- name: WatermarksOfSources
SELECT s.source, s.watermark FROM sources s
WHERE s.tenant_id = ?1 AND s.connection = ?2 AND s.watermark IS NOT NULL AND s.source IN (SELECT value FROM json_each(?3));

-- Connections that a batch met: source, trust, delivered, watermark. A row that would not change is not written.
-- name: MeetConnections
INSERT INTO sources (tenant_id, source, connection, trust, delivered, watermark)
SELECT ?1, value ->> 0, ?2, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(?3)
WHERE true
ON CONFLICT (tenant_id, source, connection) DO UPDATE SET
  trust = CASE WHEN trust = 0 THEN excluded.trust ELSE trust END,
  delivered = max(delivered, excluded.delivered),
  watermark = max(coalesce(watermark, excluded.watermark), coalesce(excluded.watermark, watermark))
WHERE delivered < excluded.delivered OR (trust = 0 AND excluded.trust > 0)
  OR (excluded.watermark IS NOT NULL AND (watermark IS NULL OR watermark < excluded.watermark));

-- name: SetConnection
INSERT INTO sources (tenant_id, source, connection, health, trust, trust_override, clock_skew, watermark)
VALUES (?1, ?2, ?3, ?4, coalesce(?5, 0), coalesce(?6, 0), coalesce(?7, 0), ?8)
ON CONFLICT (tenant_id, source, connection) DO UPDATE SET
  health = CASE WHEN ?9 THEN ?4 ELSE health END,
  trust = coalesce(?5, trust), trust_override = coalesce(?6, trust_override), clock_skew = coalesce(?7, clock_skew),
  watermark = max(coalesce(watermark, ?8), coalesce(?8, watermark));

-- Actions with a due row whose window closes after the old watermark of a source that their contract reads, and not after the new one.
-- name: ClaimsAwaitingWatermarks
SELECT DISTINCT c.claim_id
FROM jsonb_each(?2) j
CROSS JOIN contract_sources r ON r.source = j.value ->> 0
CROSS JOIN contracts k ON k.contract_id = r.contract_id AND k.version = r.version
CROSS JOIN claims c ON c.tenant_id = ?1 AND c.contract_id = k.contract_id
  AND c.requested_at > coalesce(j.value ->> 1, 0) - k.window_seconds AND c.requested_at <= (j.value ->> 2) - k.window_seconds
  AND c.contract_version = k.version
CROSS JOIN due d ON d.tenant_id = ?1 AND d.claim_id = c.claim_id;

-- name: Connections
SELECT s.source, s.connection, s.health, s.trust, s.trust_override, s.delivered, s.watermark, s.clock_skew FROM sources s
WHERE s.tenant_id = ?1 ORDER BY s.source, s.connection;
