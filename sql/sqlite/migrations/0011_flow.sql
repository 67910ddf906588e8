-- Flows: calls that have begun to take steps. The lane of a flow has "@steps" among its needs, which no user can name,
-- and a flow is processing until it ends, also while it waits. In a lease it may have the time since when its present
-- step has run, which an older program reads as damage: no call becomes a flow before the second half has run.

DROP VIEW pawl_cron_runs;
-- As before, and a flow is processing.

CREATE VIEW pawl_cron_runs AS
SELECT t.name || '@' || t.at || CASE WHEN t.no > 0 THEN '.' || t.no ELSE '' END AS id, t.name AS cron_name,
       strftime('%Y-%m-%dT%H:%M:%S', t.at / 1000000, 'unixepoch') || printf('.%06dZ', t.at % 1000000)
         AS scheduled_time,
       t.zone AS timezone,
       CASE WHEN t.kind = 3 THEN 'skipped'
            WHEN t.kind = 4 THEN 'missed'
            WHEN coalesce(o.status, g.status) IS NOT NULL THEN
              CASE coalesce(o.status, g.status) WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' WHEN 5 THEN 'dead_letter'
                                                WHEN 6 THEN 'cancelled' WHEN 7 THEN 'expired' END
            WHEN (r.seq IS NOT NULL OR n.seq IS NOT NULL) AND instr(l.needs, '@steps') = 0 THEN 'pending'
            WHEN c.seq IS NOT NULL THEN 'processing' END AS status,
       t.reason, t.count, t.call_id AS call, coalesce(o.node, t.node) AS node_id,
       strftime('%Y-%m-%dT%H:%M:%S', o.started_at / 1000000, 'unixepoch') || printf('.%06dZ', o.started_at % 1000000)
         AS started_at,
       strftime('%Y-%m-%dT%H:%M:%S', coalesce(o.finished_at, g.finished_at) / 1000000, 'unixepoch') ||
         printf('.%06dZ', coalesce(o.finished_at, g.finished_at) % 1000000) AS completed_at,
       o.error
FROM pawl_tick t
LEFT JOIN pawl_id i ON i.id = t.call_id
LEFT JOIN pawl_call c ON c.seq = i.seq
LEFT JOIN pawl_lane l ON l.lane = c.lane
LEFT JOIN pawl_outcome o ON o.seq = i.seq
LEFT JOIN pawl_gone g ON g.seq = i.seq
LEFT JOIN pawl_ready r ON r.seq = i.seq
LEFT JOIN pawl_line n ON n.seq = i.seq;
-- finish
UPDATE pawl_meta SET value = max(value, 11) WHERE name = 'min_version';
