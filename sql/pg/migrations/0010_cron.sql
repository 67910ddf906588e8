-- Schedules, and what came of their ticks. An older program does not know them: it ticks nothing, and it cannot read
-- the calls that a schedule submits, so no schedule is stored before the second half has run.

-- due_at: when a node looks at the schedule next; null while it is paused or has no time left. next_at: the next tick
-- that is not decided. next_local: what a clock in its zone shows then, and last_local at the last tick, both by the
-- data that computed them (zone_data): newer data moves no tick to a local time that was decided. paused: 1 yes, 2 it
-- was resumed and has not been looked at since. last_seq is the call of the last tick, and waiting_at the tick that
-- waits for its end.
CREATE TABLE pawl.schedule (
  name       text COLLATE "C" PRIMARY KEY,
  spec       text COLLATE "C" NOT NULL,
  version    bigint NOT NULL,
  paused     bigint NOT NULL,
  zone_data  text COLLATE "C" NOT NULL,
  due_at     bigint,
  next_at    bigint,
  next_local bigint,
  last_at    bigint,
  last_local bigint,
  last_id    text COLLATE "C",
  last_seq   bigint,
  waiting_at bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX schedule_due ON pawl.schedule (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedule_last ON pawl.schedule (last_seq) WHERE last_seq IS NOT NULL;

-- kind: 1 submitted, 2 asked for by a person, 3 skipped (with its reason), 4 missed: count of them, of which this is
-- the newest. no tells ticks of one time apart.
CREATE TABLE pawl.tick (
  name       text COLLATE "C" NOT NULL,
  at         bigint NOT NULL,
  no         bigint NOT NULL,
  kind       bigint NOT NULL,
  reason     text COLLATE "C",
  zone       text COLLATE "C" NOT NULL,
  count      bigint NOT NULL,
  call_id    text COLLATE "C",
  node       text COLLATE "C",
  created_at bigint NOT NULL,
  PRIMARY KEY (name, at, no)
);
CREATE INDEX tick_created ON pawl.tick (created_at);

-- A call that a lease holds counts as processing here, also before it has begun.
CREATE VIEW pawl.cron_runs AS
SELECT t.name || '@' || t.at || CASE WHEN t.no > 0 THEN '.' || t.no ELSE '' END AS id, t.name AS cron_name,
       pawl.moment(t.at) AS scheduled_time, t.zone AS timezone,
       CASE t.kind WHEN 3 THEN 'skipped' WHEN 4 THEN 'missed' ELSE
         CASE WHEN o.status IS NOT NULL THEN pawl.state_name(o.status)
              WHEN g.status IS NOT NULL THEN pawl.state_name(g.status)
              WHEN r.seq IS NOT NULL OR n.seq IS NOT NULL THEN 'pending'
              WHEN c.seq IS NOT NULL THEN 'processing' END END AS status,
       t.reason, t.count, t.call_id AS call, coalesce(o.node, t.node) AS node_id,
       pawl.moment(o.started_at) AS started_at, pawl.moment(coalesce(o.finished_at, g.finished_at)) AS completed_at,
       o.error
FROM pawl.tick t
LEFT JOIN pawl.id i ON i.id = t.call_id
LEFT JOIN pawl.call c ON c.seq = i.seq
LEFT JOIN pawl.outcome o ON o.seq = i.seq
LEFT JOIN pawl.gone g ON g.seq = i.seq
LEFT JOIN pawl.ready r ON r.seq = i.seq
LEFT JOIN pawl.line n ON n.seq = i.seq;
-- finish
UPDATE pawl.meta SET value = greatest(value, 10) WHERE name = 'min_version';
