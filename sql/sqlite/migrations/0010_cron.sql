-- Schedules, and what came of their ticks. An older program does not know them: it ticks nothing, and it cannot read
-- the calls that a schedule submits, so no schedule is stored before the second half has run.

-- due_at: when a node looks at the schedule next; null while it is paused or has no time left. next_at: the next tick
-- that is not decided. next_local: what a clock in its zone shows then, and last_local at the last tick, both by the
-- data that computed them (zone_data): newer data moves no tick to a local time that was decided. paused: 1 yes, 2 it
-- was resumed and has not been looked at since. last_seq is the call of the last tick, and waiting_at the tick that
-- waits for its end.
CREATE TABLE pawl_schedule (
  name       TEXT PRIMARY KEY,
  spec       TEXT NOT NULL,
  version    INTEGER NOT NULL,
  paused     INTEGER NOT NULL,
  zone_data  TEXT NOT NULL,
  due_at     INTEGER,
  next_at    INTEGER,
  next_local INTEGER,
  last_at    INTEGER,
  last_local INTEGER,
  last_id    TEXT,
  last_seq   INTEGER,
  waiting_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX pawl_schedule_due ON pawl_schedule (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX pawl_schedule_last ON pawl_schedule (last_seq) WHERE last_seq IS NOT NULL;

-- kind: 1 submitted, 2 asked for by a person, 3 skipped (with its reason), 4 missed: count of them, of which this is
-- the newest. no tells ticks of one time apart.
CREATE TABLE pawl_tick (
  name       TEXT NOT NULL,
  at         INTEGER NOT NULL,
  no         INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  reason     TEXT,
  zone       TEXT NOT NULL,
  count      INTEGER NOT NULL,
  call_id    TEXT,
  node       TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (name, at, no)
) WITHOUT ROWID;
CREATE INDEX pawl_tick_created ON pawl_tick (created_at);

-- A call that a lease holds counts as processing here, also before it has begun. Times as the archive has them.
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
            WHEN r.seq IS NOT NULL OR n.seq IS NOT NULL THEN 'pending'
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
LEFT JOIN pawl_outcome o ON o.seq = i.seq
LEFT JOIN pawl_gone g ON g.seq = i.seq
LEFT JOIN pawl_ready r ON r.seq = i.seq
LEFT JOIN pawl_line n ON n.seq = i.seq;
-- finish
UPDATE pawl_meta SET value = max(value, 10) WHERE name = 'min_version';
