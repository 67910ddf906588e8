-- Schedules, and what came of their ticks. An older program does not know them: it ticks nothing, and it cannot read
-- the calls that a schedule submits, so no schedule is stored before the second half has run.

-- due_at: when a node looks at the schedule next; null while it is paused or has no time left. next_at: the next tick
-- that is not decided. next_local: what a clock in its zone shows then, and last_local at the last tick, both by the
-- data that computed them (zone_data): newer data moves no tick to a local time that was decided. paused: 1 yes, 2 it
-- was resumed and has not been looked at since. last_seq is the call of the last tick, and waiting_at the tick that
-- waits for its end.
CREATE TABLE IF NOT EXISTS pawl_schedule (
  name       VARBINARY(255) NOT NULL PRIMARY KEY,
  spec       MEDIUMBLOB NOT NULL,
  version    BIGINT NOT NULL,
  paused     BIGINT NOT NULL,
  zone_data  VARBINARY(255) NOT NULL,
  due_at     BIGINT,
  next_at    BIGINT,
  next_local BIGINT,
  last_at    BIGINT,
  last_local BIGINT,
  last_id    VARBINARY(255),
  last_seq   BIGINT,
  waiting_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  KEY schedule_due (due_at),
  KEY schedule_last (last_seq)
) ENGINE = InnoDB;

-- kind: 1 submitted, 2 asked for by a person, 3 skipped (with its reason), 4 missed: count of them, of which this is
-- the newest. no tells ticks of one time apart.
CREATE TABLE IF NOT EXISTS pawl_tick (
  name       VARBINARY(255) NOT NULL,
  at         BIGINT NOT NULL,
  no         BIGINT NOT NULL,
  kind       BIGINT NOT NULL,
  reason     VARBINARY(255),
  zone       VARBINARY(255) NOT NULL,
  count      BIGINT NOT NULL,
  call_id    VARBINARY(255),
  node       VARBINARY(255),
  created_at BIGINT NOT NULL,
  PRIMARY KEY (name, at, no),
  KEY tick_created (created_at)
) ENGINE = InnoDB;

-- A call that a lease holds counts as processing here, also before it has begun. Times in UTC. An id belongs to this
-- view alone.
CREATE OR REPLACE VIEW pawl_cron_runs AS
SELECT CONVERT(CONCAT(t.name, '@', t.at, IF(t.no > 0, CONCAT('.', t.no), '')) USING utf8mb4) AS id,
       CONVERT(t.name USING utf8mb4) AS cron_name,
       TIMESTAMPADD(MICROSECOND, t.at, TIMESTAMP '1970-01-01 00:00:00.000000') AS scheduled_time,
       CONVERT(t.zone USING utf8mb4) AS timezone,
       CASE WHEN t.kind = 3 THEN 'skipped'
            WHEN t.kind = 4 THEN 'missed'
            WHEN COALESCE(o.status, g.status) IS NOT NULL THEN
              ELT(COALESCE(o.status, g.status) - 2, 'completed', 'failed', 'dead_letter', 'cancelled', 'expired')
            WHEN r.seq IS NOT NULL OR n.seq IS NOT NULL THEN 'pending'
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
LEFT JOIN pawl_outcome o ON o.seq = i.seq
LEFT JOIN pawl_gone g ON g.seq = i.seq
LEFT JOIN pawl_ready r ON r.seq = i.seq
LEFT JOIN pawl_line n ON n.seq = i.seq;
-- finish
UPDATE pawl_meta SET value = GREATEST(value, 10) WHERE name = 'min_version';
