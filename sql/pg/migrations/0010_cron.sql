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

-- What applications do in SQL to other things than calls: kind is the feature that takes the row over, method what it
-- is to do, id the name of the thing. An older program would take such a row for a call, so none is written before the
-- second half has run.
ALTER TABLE pawl.inbox ADD COLUMN kind text COLLATE "C";

-- As before, without those rows.
CREATE OR REPLACE VIEW pawl.calls AS
SELECT i.id, c.seq, l.type, c.method, c.key, nullif(o.key_no, 0) AS key_no, l.queue, c.priority,
       pawl.state_name(o.status) AS status, o.attempts, o.lost, o.redrives, o.error, o.node, c.caller, c.client,
       c.parent, substr(c.trace, 4, 32) AS trace_id, coalesce(c.tags, '{}')::jsonb AS tags,
       CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END AS input,
       CASE c.form WHEN 2 THEN translate(encode(c.input, 'base64'), chr(10), '') END AS input_base64,
       CASE o.form WHEN 1 THEN convert_from(o.result, 'UTF8') END AS result,
       CASE o.form WHEN 2 THEN translate(encode(o.result, 'base64'), chr(10), '') END AS result_base64,
       pawl.moment(c.created_at) AS created_at, pawl.moment(c.run_at) AS run_at,
       pawl.moment(o.claimed_at) AS claimed_at, pawl.moment(o.started_at) AS started_at,
       pawl.moment(o.finished_at) AS finished_at,
       CASE WHEN o.redrives = 0 THEN pawl.moment(c.expires_at) END AS expires_at,
       pawl.moment(o.keep_until) AS keep_until
FROM pawl.outcome o
JOIN pawl.call c ON c.seq = o.seq
JOIN pawl.id i ON i.id = c.id AND i.seq = c.seq
JOIN pawl.lane l ON l.lane = c.lane
UNION ALL
SELECT i.id, c.seq, l.type, c.method, c.key, nullif(p.key_no, 0), l.queue, p.priority, 'pending', p.attempts, p.lost,
       p.redrives, CASE WHEN p.attempts + p.lost > 0 THEN
         (SELECT a.error FROM pawl.attempt a WHERE a.seq = c.seq AND a.how IN (2, 3, 4, 8)
          ORDER BY a.no DESC LIMIT 1) END, NULL, c.caller, c.client,
       c.parent, substr(c.trace, 4, 32), coalesce(c.tags, '{}')::jsonb,
       CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END,
       CASE c.form WHEN 2 THEN translate(encode(c.input, 'base64'), chr(10), '') END, NULL, NULL,
       pawl.moment(c.created_at), pawl.moment(p.run_at), NULL, NULL, NULL,
       CASE WHEN p.redrives = 0 THEN pawl.moment(c.expires_at) END, NULL
FROM (SELECT r.seq, r.track / 2 AS lane, -r.rank AS priority, r.run_at, r.attempts, r.lost, r.redrives, r.key_no
      FROM pawl.ready r
      UNION ALL
      SELECT n.seq, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no FROM pawl.line n) p
JOIN pawl.call c ON c.seq = p.seq
JOIN pawl.id i ON i.id = c.id AND i.seq = c.seq
JOIN pawl.lane l ON l.lane = p.lane
UNION ALL
SELECT i.id, c.seq, l.type, c.method, c.key, h.key_no, l.queue, h.priority, 'processing', h.attempts, h.lost,
       h.redrives, NULL, h.owner, c.caller, c.client,
       c.parent, substr(c.trace, 4, 32), coalesce(c.tags, '{}')::jsonb,
       CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END,
       CASE c.form WHEN 2 THEN translate(encode(c.input, 'base64'), chr(10), '') END, NULL, NULL,
       pawl.moment(c.created_at), pawl.moment(h.run_at), pawl.moment(h.claimed_at), NULL, NULL,
       CASE WHEN h.redrives = 0 THEN pawl.moment(c.expires_at) END, NULL
FROM pawl.call c
JOIN pawl.id i ON i.id = c.id AND i.seq = c.seq
JOIN pawl.leased h ON h.low <= c.seq AND h.high >= c.seq AND h.seq = c.seq
JOIN pawl.lane l ON l.lane = h.lane
WHERE h.begun
UNION ALL
-- Held by a lease, and it has not begun.
SELECT i.id, c.seq, l.type, c.method, c.key, h.key_no, l.queue, h.priority, 'pending', h.attempts, h.lost,
       h.redrives, CASE WHEN h.attempts + h.lost > 0 THEN
         (SELECT a.error FROM pawl.attempt a WHERE a.seq = c.seq AND a.how IN (2, 3, 4, 8)
          ORDER BY a.no DESC LIMIT 1) END, h.owner, c.caller, c.client,
       c.parent, substr(c.trace, 4, 32), coalesce(c.tags, '{}')::jsonb,
       CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END,
       CASE c.form WHEN 2 THEN translate(encode(c.input, 'base64'), chr(10), '') END, NULL, NULL,
       pawl.moment(c.created_at), pawl.moment(h.run_at), pawl.moment(h.claimed_at), NULL, NULL,
       CASE WHEN h.redrives = 0 THEN pawl.moment(c.expires_at) END, NULL
FROM pawl.call c
JOIN pawl.id i ON i.id = c.id AND i.seq = c.seq
JOIN pawl.leased h ON h.low <= c.seq AND h.high >= c.seq AND h.seq = c.seq
JOIN pawl.lane l ON l.lane = h.lane
WHERE h.open AND NOT h.begun
UNION ALL
-- Committed, and not yet taken over.
SELECT b.id, NULL, b.type, b.method, b.key, NULL, b.queue, b.priority, 'pending', 0, 0, 0, NULL, NULL, b.caller,
       b.client, b.parent, substr(b.trace, 4, 32), coalesce(b.tags, '{}')::jsonb,
       CASE b.form WHEN 1 THEN convert_from(b.input, 'UTF8') END,
       CASE b.form WHEN 2 THEN translate(encode(b.input, 'base64'), chr(10), '') END, NULL, NULL,
       pawl.moment(b.created_at), pawl.moment(coalesce(b.run_at, b.created_at)), NULL, NULL, NULL,
       pawl.moment(b.expires_at), NULL
FROM pawl.inbox b
WHERE b.refused_at IS NULL AND b.kind IS NULL AND NOT EXISTS (SELECT 1 FROM pawl.id i WHERE i.id = b.id);

-- Store a schedule, as a PUT of this spec does, and remove one; both if and only if the transaction around it commits.
-- A node takes it over; what is refused is in inbox_conflicts.
CREATE FUNCTION pawl.schedule_row(name text, action text, spec json) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF schedule_row.name IS NULL THEN
    PERFORM pawl.refuse('name'::text, 'is missing'::text);
  ELSIF octet_length(spec::text) > 4194304 THEN
    RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
      MESSAGE = format('field "spec": is %s bytes, limit 4194304', octet_length(spec::text));
  ELSIF NOT EXISTS (SELECT FROM pawl.migration m WHERE m.number = 10 AND m.finished <> 0) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE =
      'schedules: every node must run this version first: run pawl migrate finish';
  END IF;
  PERFORM pawl.check_name('name'::text, schedule_row.name);
  INSERT INTO pawl.inbox (kind, id, type, method, queue, form, input, priority, created_at, client)
  VALUES ('cron', schedule_row.name, 'pawl.schedule', schedule_row.action, 'default',
          CASE WHEN spec IS NULL THEN 0 ELSE 1 END, convert_to(spec::text, 'UTF8'), 0,
          round(extract(epoch FROM clock_timestamp()) * 1000000), session_user);
END $$;

CREATE FUNCTION pawl.schedule(name text, spec json) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF schedule.spec IS NULL THEN
    PERFORM pawl.refuse('spec'::text, 'is missing'::text);
  END IF;
  PERFORM pawl.schedule_row(schedule.name, 'put'::text, schedule.spec);
END $$;

CREATE FUNCTION pawl.unschedule(name text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pawl.schedule_row(unschedule.name, 'delete'::text, NULL::json);
END $$;

REVOKE ALL ON FUNCTION pawl.schedule_row, pawl.schedule, pawl.unschedule FROM PUBLIC;
-- finish
UPDATE pawl.meta SET value = greatest(value, 10) WHERE name = 'min_version';
