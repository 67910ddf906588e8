-- How many calls of a lease run at once: a call that was claimed and has not begun is pending to readers, and is not
-- counted as lost when its lease is taken back. 0: all of them, which is also what an older program's leases have.
ALTER TABLE pawl.lease ADD COLUMN width integer NOT NULL DEFAULT 0;

-- As before, but a call comes behind those of its key by its place in the line, which is not always the order of
-- their numbers. A place is not written where it is what the number gives.
CREATE OR REPLACE FUNCTION pawl.held(packed bytea)
RETURNS TABLE (seq bigint, run_at bigint, lane integer, priority integer, attempts integer, lost integer,
               redrives integer, key_no bigint, before bigint)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 2000 ROWS 50 AS $$
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

-- What leases hold, lease by lease. open: it has not ended. begun: it is open, no open call stands before it in its
-- run (its key's calls in the lease), and fewer than `width` such calls of the lease come before it by priority, run_at
-- and seq. Every call of a lease is looked at to tell, so a question for one call should say low and high as well.
CREATE VIEW pawl.leased AS
SELECT t.token, t.low, t.high, coalesce(t.worker, t.node) AS owner, t.claimed_at, h.seq, h.run_at, h.lane, h.priority,
       h.attempts, h.lost, h.redrives, h.key_no, h.open, h.begun
FROM pawl.lease t
CROSS JOIN LATERAL (
  SELECT f.*, f.first AND (t.width = 0 OR
           row_number() OVER (PARTITION BY f.first ORDER BY f.priority DESC, f.run_at, f.seq) <= t.width) AS begun
  FROM (SELECT p.*, o.seq IS NULL AS open, o.seq IS NULL AND (p.before IS NULL OR b.seq IS NOT NULL) AS first
        FROM pawl.held(t.held) p
        LEFT JOIN pawl.outcome o ON o.seq = p.seq
        LEFT JOIN pawl.outcome b ON b.seq = p.before) f) h;

-- Every call by where it is, as before; what leases hold is processing when it has begun, else pending.
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
WHERE b.refused_at IS NULL AND NOT EXISTS (SELECT 1 FROM pawl.id i WHERE i.id = b.id);
