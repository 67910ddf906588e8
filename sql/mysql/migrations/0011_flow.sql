-- Flows: calls that have begun to take steps. The lane of a flow has "@steps" among its needs, which no user can name,
-- and a flow is processing until it ends, also while it waits. In a lease it may have the time since when its present
-- step has run, which an older program reads as damage: no call becomes a flow before the second half has run.

-- As before, and a flow is processing.

CREATE OR REPLACE VIEW pawl_cron_runs AS
SELECT CONVERT(CONCAT(t.name, '@', t.at, IF(t.no > 0, CONCAT('.', t.no), '')) USING utf8mb4) AS id,
       CONVERT(t.name USING utf8mb4) AS cron_name,
       TIMESTAMPADD(MICROSECOND, t.at, TIMESTAMP '1970-01-01 00:00:00.000000') AS scheduled_time,
       CONVERT(t.zone USING utf8mb4) AS timezone,
       CASE WHEN t.kind = 3 THEN 'skipped'
            WHEN t.kind = 4 THEN 'missed'
            WHEN COALESCE(o.status, g.status) IS NOT NULL THEN
              ELT(COALESCE(o.status, g.status) - 2, 'completed', 'failed', 'dead_letter', 'cancelled', 'expired')
            WHEN (r.seq IS NOT NULL OR n.seq IS NOT NULL) AND LOCATE('@steps', l.needs) = 0 THEN 'pending'
            WHEN c.seq IS NOT NULL THEN 'processing' END AS status,
       CONVERT(t.reason USING utf8mb4) AS reason, t.count, CONVERT(t.call_id USING utf8mb4) AS `call`,
       CONVERT(COALESCE(o.node, t.node) USING utf8mb4) AS node_id,
       TIMESTAMPADD(MICROSECOND, o.started_at, TIMESTAMP '1970-01-01 00:00:00.000000') AS started_at,
       TIMESTAMPADD(MICROSECOND, COALESCE(o.finished_at, g.finished_at), TIMESTAMP '1970-01-01 00:00:00.000000')
         AS completed_at,
       CONVERT(o.error USING utf8mb4) AS error
FROM pawl_tick t
LEFT JOIN pawl_id i ON i.id = t.call_id
LEFT JOIN pawl_call c ON c.seq = i.seq
LEFT JOIN pawl_lane l ON l.lane = c.lane
LEFT JOIN pawl_outcome o ON o.seq = i.seq
LEFT JOIN pawl_gone g ON g.seq = i.seq
LEFT JOIN pawl_ready r ON r.seq = i.seq
LEFT JOIN pawl_line n ON n.seq = i.seq;
-- finish
UPDATE pawl_meta SET value = GREATEST(value, 11) WHERE name = 'min_version';
