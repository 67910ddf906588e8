-- Flows: calls that have begun to take steps. The lane of a flow has "@steps" among its needs, which no user can name,
-- and a flow is processing until it ends, also while it waits. In a lease it may have the time since when its present
-- step has run, which an older program reads as damage: no call becomes a flow before the second half has run.

-- As before, and skips that time.
CREATE OR REPLACE FUNCTION pawl.held(packed bytea)
RETURNS TABLE (seq bigint, run_at bigint, lane integer, priority integer, attempts integer, lost integer,
               redrives integer, key_no bigint, before bigint)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 2000 ROWS 50 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  n bigint[];
  at integer := 3;
  flags integer;
  i_seq bigint := 0;
  i_run_at bigint := 0;
  i_lane bigint := 0;
  i_priority bigint := 0;
  i_no bigint := 0;
  i_key bigint;
  i_pos bigint;
  tries bigint[];
  v_seq bigint[] := '{}';
  v_run_at bigint[] := '{}';
  v_lane bigint[] := '{}';
  v_priority bigint[] := '{}';
  v_attempts bigint[] := '{}';
  v_lost bigint[] := '{}';
  v_redrives bigint[] := '{}';
  v_key bigint[] := '{}';
  v_no bigint[] := '{}';
  v_pos bigint[] := '{}';
BEGIN
  SELECT array_agg(z.v ORDER BY z.g) INTO n FROM (
    SELECT y.g, sum((y.b & 127)::bigint << (7 * (y.i - y.start)))::bigint AS v FROM (
      SELECT x.i, x.b, x.g, min(x.i) OVER (PARTITION BY x.g) AS start FROM (
        SELECT i, get_byte(packed, i) AS b,
               sum((get_byte(packed, i) < 128)::integer) OVER (ORDER BY i) - (get_byte(packed, i) < 128)::integer AS g
        FROM generate_series(0, octet_length(packed) - 1) i) x) y
    GROUP BY y.g) z;
  FOR k IN 1 .. coalesce(n[2], 0) LOOP
    flags := n[at];
    at := at + 1;
    i_seq := i_seq + 1;
    IF flags & 1 > 0 THEN
      i_seq := i_seq + n[at];
      at := at + 1;
    END IF;
    IF flags & 2 > 0 THEN
      i_run_at := i_run_at + ((n[at] >> 1) # -(n[at] & 1));
      at := at + 1;
    END IF;
    IF flags & 4 > 0 THEN
      i_lane := i_lane + ((n[at] >> 1) # -(n[at] & 1));
      at := at + 1;
    END IF;
    IF flags & 8 > 0 THEN
      i_priority := i_priority + ((n[at] >> 1) # -(n[at] & 1));
      at := at + 1;
    END IF;
    tries := '{0,0,0}';
    IF flags & 16 > 0 THEN
      tries := n[at : at + 2];
      at := at + 3;
    END IF;
    i_key := 0;
    IF flags & 32 > 0 THEN
      i_key := n[at];
      i_no := i_no + ((n[at + 1] >> 1) # -(n[at + 1] & 1));
      at := at + 2;
    ELSE
      i_no := 0;
    END IF;
    i_pos := i_no * 1024;
    IF flags & 64 > 0 THEN
      i_pos := i_seq + ((n[at] >> 1) # -(n[at] & 1));
      at := at + 1;
    END IF;
    IF flags & 128 > 0 THEN -- which features watch it
      at := at + 1;
    END IF;
    IF flags & 256 > 0 THEN -- since when its step has run
      at := at + 1;
    END IF;
    v_seq := v_seq || i_seq;
    v_run_at := v_run_at || i_run_at;
    v_lane := v_lane || i_lane;
    v_priority := v_priority || i_priority;
    v_attempts := v_attempts || tries[1];
    v_lost := v_lost || tries[2];
    v_redrives := v_redrives || tries[3];
    v_key := v_key || i_key;
    v_no := v_no || i_no;
    v_pos := v_pos || i_pos;
  END LOOP;
  RETURN QUERY
  SELECT h.s, h.r, h.l::integer, h.p::integer, h.a::integer, h.o::integer, h.d::integer, nullif(h.no, 0),
         CASE WHEN h.k > 0 THEN lag(h.s) OVER (PARTITION BY h.k ORDER BY h.pos) END
  FROM unnest(v_seq, v_run_at, v_lane, v_priority, v_attempts, v_lost, v_redrives, v_key, v_no, v_pos)
       h (s, r, l, p, a, o, d, k, no, pos);
END $$;

-- As before, and flows are processing.
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
WHERE strpos(l.needs, '@steps') = 0
UNION ALL
-- A flow that waits.
SELECT i.id, c.seq, l.type, c.method, c.key, nullif(p.key_no, 0), l.queue, p.priority, 'processing', p.attempts, p.lost,
       p.redrives, CASE WHEN p.attempts + p.lost > 0 THEN
         (SELECT a.error FROM pawl.attempt a WHERE a.seq = c.seq AND a.how IN (2, 3, 4, 8)
          ORDER BY a.no DESC LIMIT 1) END, NULL, c.caller, c.client,
       c.parent, substr(c.trace, 4, 32), coalesce(c.tags, '{}')::jsonb,
       CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END,
       CASE c.form WHEN 2 THEN translate(encode(c.input, 'base64'), chr(10), '') END, NULL, NULL,
       pawl.moment(c.created_at),
       pawl.moment(CASE WHEN p.run_at < 253402300799999999 THEN p.run_at ELSE c.run_at END), NULL, NULL, NULL,
       CASE WHEN p.redrives = 0 THEN pawl.moment(c.expires_at) END, NULL
FROM (SELECT r.seq, t.lane, -r.rank AS priority, r.run_at, r.attempts, r.lost, r.redrives, r.key_no
      FROM pawl.lane t JOIN pawl.ready r ON r.track IN (t.lane * 2, t.lane * 2 + 1)
      WHERE strpos(t.needs, '@steps') > 0
      UNION ALL
      SELECT n.seq, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no
      FROM pawl.line n JOIN pawl.lane t ON t.lane = n.lane WHERE strpos(t.needs, '@steps') > 0) p
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
WHERE h.begun OR (h.open AND strpos(l.needs, '@steps') > 0)
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
WHERE h.open AND NOT h.begun AND strpos(l.needs, '@steps') = 0
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

-- As before, and a flow is processing.
CREATE OR REPLACE VIEW pawl.cron_runs AS
SELECT t.name || '@' || t.at || CASE WHEN t.no > 0 THEN '.' || t.no ELSE '' END AS id, t.name AS cron_name,
       pawl.moment(t.at) AS scheduled_time, t.zone AS timezone,
       CASE t.kind WHEN 3 THEN 'skipped' WHEN 4 THEN 'missed' ELSE
         CASE WHEN o.status IS NOT NULL THEN pawl.state_name(o.status)
              WHEN g.status IS NOT NULL THEN pawl.state_name(g.status)
              WHEN (r.seq IS NOT NULL OR n.seq IS NOT NULL) AND strpos(l.needs, '@steps') = 0 THEN 'pending'
              WHEN c.seq IS NOT NULL THEN 'processing' END END AS status,
       t.reason, t.count, t.call_id AS call, coalesce(o.node, t.node) AS node_id,
       pawl.moment(o.started_at) AS started_at, pawl.moment(coalesce(o.finished_at, g.finished_at)) AS completed_at,
       o.error
FROM pawl.tick t
LEFT JOIN pawl.id i ON i.id = t.call_id
LEFT JOIN pawl.call c ON c.seq = i.seq
LEFT JOIN pawl.lane l ON l.lane = c.lane
LEFT JOIN pawl.outcome o ON o.seq = i.seq
LEFT JOIN pawl.gone g ON g.seq = i.seq
LEFT JOIN pawl.ready r ON r.seq = i.seq
LEFT JOIN pawl.line n ON n.seq = i.seq;
-- finish
UPDATE pawl.meta SET value = greatest(value, 11) WHERE name = 'min_version';
