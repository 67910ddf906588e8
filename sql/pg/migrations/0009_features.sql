-- From the second half of this step on, calls may be watched by features: an older program reads a watched call, and
-- a lease with marks, as damage.

-- As before, and skips marks.
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

-- Ended calls that a function in SQL wants to be removed. A node's next gc removes them, so that everything that
-- belongs to a call goes with it, also what a later version keeps beside it. A row means nothing once the call has been
-- retried: its end is another one then.
CREATE TABLE pawl.removal (
  seq         bigint PRIMARY KEY,
  finished_at bigint NOT NULL,  -- of the outcome that is meant
  archive     boolean NOT NULL, -- copy it into the archive first
  remember    bigint NOT NULL   -- microseconds: how long its id is remembered after its retention
);

-- As before, except that ended calls past their retention are only marked. How many calls that is, without those that
-- were marked before.
CREATE OR REPLACE FUNCTION pawl.cleanup_expired(remember interval DEFAULT '30 days') RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_us bigint := round(extract(epoch FROM clock_timestamp()) * 1000000);
  remember_us bigint := pawl.check_seconds('remember'::text, extract(epoch FROM remember)::numeric, 0::numeric);
  ids text[];
  marked bigint;
BEGIN
  INSERT INTO pawl.removal AS r (seq, finished_at, archive, remember)
  SELECT o.seq, o.finished_at, false, remember_us FROM pawl.outcome o WHERE o.keep_until <= now_us ORDER BY o.seq
  ON CONFLICT (seq) DO UPDATE SET finished_at = excluded.finished_at, archive = false, remember = excluded.remember
  WHERE r.finished_at <> excluded.finished_at;
  GET DIAGNOSTICS marked = ROW_COUNT;
  LOOP
    WITH over AS (SELECT g.seq FROM pawl.gone g WHERE g.forget_at <= now_us ORDER BY g.forget_at, g.seq
                  LIMIT 1000 FOR UPDATE SKIP LOCKED),
         gone AS (DELETE FROM pawl.gone g USING over WHERE g.seq = over.seq RETURNING g.id)
    SELECT array_agg(gone.id) INTO ids FROM gone;
    EXIT WHEN ids IS NULL;
    DELETE FROM pawl.id i WHERE i.id = ANY (ids);
  END LOOP;
  RETURN marked;
END $$;

-- As before, except that calls are only marked. How many calls that is, without those that were marked before.
CREATE OR REPLACE FUNCTION pawl.archive(older_than interval, remember interval DEFAULT '30 days') RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_us bigint := round(extract(epoch FROM clock_timestamp()) * 1000000);
  before_us bigint := now_us
    - pawl.check_seconds('older_than'::text, extract(epoch FROM older_than)::numeric, 0::numeric);
  remember_us bigint := pawl.check_seconds('remember'::text, extract(epoch FROM remember)::numeric, 0::numeric);
  marked bigint;
BEGIN
  IF older_than IS NULL THEN
    PERFORM pawl.refuse('older_than'::text, 'is missing'::text);
  END IF;
  INSERT INTO pawl.removal AS r (seq, finished_at, archive, remember)
  SELECT o.seq, o.finished_at, true, remember_us FROM pawl.outcome o
  WHERE o.finished_at < before_us AND o.keep_until < 9223372036854775807 -- that one blocks its key
  ORDER BY o.seq
  ON CONFLICT (seq) DO UPDATE SET finished_at = excluded.finished_at, archive = true, remember = excluded.remember
  WHERE r.finished_at <> excluded.finished_at OR NOT r.archive;
  GET DIAGNOSTICS marked = ROW_COUNT;
  RETURN marked;
END $$;

DROP FUNCTION pawl.bury(bigint[], bigint);

-- finish
UPDATE pawl.meta SET value = greatest(value, 9) WHERE name = 'min_version';
