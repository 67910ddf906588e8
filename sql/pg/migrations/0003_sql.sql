-- What applications do in SQL: submit inside their own transactions, look at calls, tend the ledger.
--
-- Functions that change something run with their owner's rights (SECURITY DEFINER) and a search_path of their
-- own, so that a role needs EXECUTE and nothing else: with rights on the tables instead, whoever may submit could
-- also write rows that were never checked, or sign them with another's name.

-- Calls that were submitted in applications' transactions, until a node takes them over. Nothing here is unique but
-- n, so nobody waits for anybody. Times are microseconds since 1970 UTC, as everywhere. A row that could not be
-- taken over stays, with the reason.
CREATE TABLE pawl.inbox (
  n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id         text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  method     text COLLATE "C" NOT NULL,
  key        text COLLATE "C",
  queue      text COLLATE "C" NOT NULL,
  form       integer NOT NULL,
  input      bytea,
  priority   integer NOT NULL,
  created_at bigint NOT NULL,
  run_at     bigint,
  expires_at bigint,
  options    text COLLATE "C",
  caller     text COLLATE "C",
  client     text COLLATE "C",
  parent     text COLLATE "C",
  trace      text COLLATE "C",
  tags       text COLLATE "C",
  refused_at bigint,
  code       text COLLATE "C",
  reason     text COLLATE "C"
);
CREATE INDEX inbox_id ON pawl.inbox (id);
CREATE INDEX inbox_waiting ON pawl.inbox (n) WHERE refused_at IS NULL;
CREATE INDEX inbox_refused ON pawl.inbox (refused_at, n) WHERE refused_at IS NOT NULL;

-- Where hints for nodes go: "pawl_" and the schema's name.
CREATE FUNCTION pawl.channel() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'pawl_' || btrim('pawl.', '".');

-- ---- Checks ---------------------------------------------------------------------------------------

CREATE FUNCTION pawl.refuse(field text, fault text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
    MESSAGE = format('field "%s": %s', field, fault);
END $$;

-- Control characters are those below U+0020 and U+007F to U+009F.
CREATE FUNCTION pawl.has_control(t text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN t COLLATE "C" ~ ('[' || chr(1) || '-' || chr(31) || chr(127) || '-' || chr(159) || ']');

CREATE FUNCTION pawl.check_name(field text, name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF name = '' THEN
    PERFORM pawl.refuse(field, 'is empty');
  ELSIF octet_length(name) > 255 THEN
    PERFORM pawl.refuse(field, 'is longer than 255 bytes');
  ELSIF pawl.has_control(name) THEN
    PERFORM pawl.refuse(field, 'has a control character');
  ELSIF name IN ('.', '..') THEN
    PERFORM pawl.refuse(field, 'must not be "." or ".."');
  END IF;
END $$;

CREATE FUNCTION pawl.check_number(field text, n numeric, low numeric, high numeric) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF n NOT BETWEEN low AND high THEN
    PERFORM pawl.refuse(field, format('is %s, not in %s..%s', n, low, high));
  END IF;
END $$;

-- Seconds, as microseconds; at most a hundred years.
CREATE FUNCTION pawl.check_seconds(field text, s numeric, low numeric) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  IF s * 1000000 < low OR s > 3162240000 OR s = 'NaN' THEN
    PERFORM pawl.refuse(field, format('is not %s 0 and at most 3162240000 s',
                                      CASE WHEN low > 0 THEN 'above' ELSE 'at least' END));
  END IF;
  RETURN round(s * 1000000);
END $$;

CREATE FUNCTION pawl.check_moment(field text, t timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT isfinite(t) OR extract(year FROM t AT TIME ZONE 'UTC') NOT BETWEEN 1 AND 9999 THEN
    PERFORM pawl.refuse(field, 'is not in the years 0001 to 9999');
  END IF;
  RETURN round(extract(epoch FROM t) * 1000000);
END $$;

CREATE FUNCTION pawl.check_trace(t text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF t !~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' OR t ~ '^00-0{32}' OR t ~ '^00-.{32}-0{16}' THEN
    PERFORM pawl.refuse('traceparent', 'is not 00-(32 hex)-(16 hex)-(2 hex)');
  END IF;
END $$;

-- The text that the ledger keeps; null for none.
CREATE FUNCTION pawl.check_tags(tags jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  tag record;
  n integer := 0;
BEGIN
  IF tags IS NULL OR tags = '{}' THEN
    RETURN NULL;
  ELSIF jsonb_typeof(tags) <> 'object' THEN
    PERFORM pawl.refuse('tags', 'is not an object');
  END IF;
  FOR tag IN SELECT t.key AS name, t.value #>> '{}' AS value, jsonb_typeof(t.value) AS kind
             FROM jsonb_each(tags) t LOOP
    n := n + 1;
    IF n > 16 THEN
      PERFORM pawl.refuse('tags', 'has more than 16 tags');
    ELSIF tag.kind <> 'string' THEN
      PERFORM pawl.refuse('tags', format('"%s" is not a string', tag.name));
    ELSIF tag.name = '' OR octet_length(tag.name) > 64 OR pawl.has_control(tag.name) THEN
      PERFORM pawl.refuse('tags', 'a name is not 1 to 64 bytes without control characters');
    ELSIF octet_length(tag.value) > 255 OR pawl.has_control(tag.value) THEN
      PERFORM pawl.refuse('tags', format('the value of "%s" is not 255 bytes at most, without control characters',
                                         tag.name));
    END IF;
  END LOOP;
  RETURN tags::text;
END $$;

-- {"base", "factor", "max", "jitter"} as the ledger's options have it.
CREATE FUNCTION pawl.check_backoff(backoff jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  part record;
  made jsonb := '{}';
BEGIN
  IF backoff IS NULL THEN
    RETURN made;
  ELSIF jsonb_typeof(backoff) <> 'object' THEN
    PERFORM pawl.refuse('backoff', 'is not an object');
  END IF;
  FOR part IN SELECT b.key AS name, b.value, jsonb_typeof(b.value) AS kind FROM jsonb_each(backoff) b LOOP
    IF part.name NOT IN ('base', 'factor', 'max', 'jitter') THEN
      PERFORM pawl.refuse('backoff.' || part.name, 'is unknown');
    ELSIF part.kind <> 'number' THEN
      PERFORM pawl.refuse('backoff.' || part.name, 'is not a number');
    ELSIF part.name = 'factor' THEN
      PERFORM pawl.check_number('backoff.factor', part.value::numeric, 1, 1000);
      made := made || jsonb_build_object('backoff_factor', part.value);
    ELSIF part.name = 'jitter' THEN
      PERFORM pawl.check_number('backoff.jitter', part.value::numeric, 0, 1);
      made := made || jsonb_build_object('backoff_jitter', part.value);
    ELSE
      made := made || jsonb_build_object('backoff_' || part.name || '_us',
                pawl.check_seconds('backoff.' || part.name, part.value::numeric, 0));
    END IF;
  END LOOP;
  RETURN made;
END $$;

-- ---- Submitting -----------------------------------------------------------------------------------

-- A UUIDv7: 48 bits of milliseconds, 12 of their fraction, the rest dice.
CREATE FUNCTION pawl.new_id(us bigint) RETURNS text
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN encode(overlay(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send(us / 1000) FROM 3) FROM 1 FOR 6)
    PLACING substring(int4send((28672 + us % 1000 * 4096 / 1000)::integer) FROM 3) FROM 7 FOR 2), 'hex')::uuid::text;

-- A JSON value in one way of writing it: no white space, members by name. Numbers and strings count as written.
CREATE FUNCTION pawl.plain_json(j json) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE json_typeof(j)
    WHEN 'object' THEN '{' || coalesce((SELECT string_agg(to_json(m.key)::text || ':' || pawl.plain_json(m.value),
                         ',' ORDER BY m.key COLLATE "C") FROM json_each(j) m), '') || '}'
    WHEN 'array' THEN '[' || coalesce((SELECT string_agg(pawl.plain_json(e.value), ',' ORDER BY e.n)
                         FROM json_array_elements(j) WITH ORDINALITY e (value, n)), '') || ']'
    ELSE btrim(j::text, chr(32) || chr(9) || chr(10) || chr(13)) END;
END $$;

-- The same input? One that cannot be taken apart here counts byte for byte. Nothing at all is null.
CREATE FUNCTION pawl.same_input(form_a integer, a bytea, form_b integer, b bytea) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF (form_a = 2) <> (form_b = 2) THEN
    RETURN false;
  ELSIF coalesce(a, 'null') = coalesce(b, 'null') THEN
    RETURN true;
  ELSIF form_a = 2 THEN
    RETURN false;
  END IF;
  RETURN pawl.plain_json(convert_from(coalesce(a, 'null'), 'UTF8')::json) =
         pawl.plain_json(convert_from(coalesce(b, 'null'), 'UTF8')::json);
EXCEPTION WHEN OTHERS THEN
  RETURN false;
END $$;

-- For strict: is this id known, and means the same? An error when it means something else. Those who ask for one id
-- at the same time take turns, for as long as lock_timeout says, a second when it says nothing.
CREATE FUNCTION pawl.known(asked pawl.inbox) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  patience text := current_setting('lock_timeout');
  stands record;
  number bigint;
BEGIN
  IF patience = '0' THEN
    PERFORM set_config('lock_timeout', '1s', true);
  END IF;
  PERFORM pg_advisory_xact_lock(1885435760, hashtext('pawl.' || asked.id));
  PERFORM set_config('lock_timeout', patience, true);
  SELECT i.seq INTO number FROM pawl.id i WHERE i.id = asked.id;
  IF FOUND THEN
    SELECT l.type, c.method, c.key, c.form, c.input INTO stands
    FROM pawl.call c JOIN pawl.lane l ON l.lane = c.lane WHERE c.seq = number;
    IF NOT FOUND THEN
      RAISE EXCEPTION USING ERRCODE = 'unique_violation',
        MESSAGE = format('call "%s" has ended and its retention has passed', asked.id);
    END IF;
  ELSE
    SELECT i.type, i.method, i.key, i.form, i.input INTO stands
    FROM pawl.inbox i WHERE i.id = asked.id AND i.refused_at IS NULL ORDER BY i.n LIMIT 1;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
  END IF;
  IF stands.type <> asked.type OR stands.method <> asked.method OR stands.key IS DISTINCT FROM asked.key OR
     NOT pawl.same_input(stands.form, stands.input, asked.form, asked.input) THEN
    RAISE EXCEPTION USING ERRCODE = 'unique_violation',
      MESSAGE = format('call "%s" already exists with other content', asked.id);
  END IF;
  RETURN true;
END $$;

-- A hint for nodes. What waits in the server's queue of notifications is other people's business, but a full one
-- would fail the commit: then there is no hint.
CREATE FUNCTION pawl.hint_nodes() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF pg_notification_queue_usage() < 0.5 THEN
    PERFORM pg_notify(pawl.channel(), 'inbox');
  END IF;
END $$;

-- Hand in a call. It exists if and only if the transaction around it commits. Durations are intervals, those in
-- backoff are seconds; a null is as good as nothing.
CREATE FUNCTION pawl.submit(
  type text, method text DEFAULT 'run', input json DEFAULT NULL, id text DEFAULT NULL, key text DEFAULT NULL,
  queue text DEFAULT 'default', priority integer DEFAULT 0, delay interval DEFAULT NULL,
  run_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT 3, max_lost integer DEFAULT 5,
  backoff jsonb DEFAULT NULL, timeout interval DEFAULT NULL, expires_in interval DEFAULT NULL,
  expires_at timestamptz DEFAULT NULL, keep interval DEFAULT NULL, caller text DEFAULT NULL,
  parent text DEFAULT NULL, traceparent text DEFAULT NULL, tags jsonb DEFAULT NULL, on_dead text DEFAULT 'skip',
  input_bytes bytea DEFAULT NULL, notify boolean DEFAULT false, strict boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_us bigint := round(extract(epoch FROM clock_timestamp()) * 1000000);
  options jsonb;
  v pawl.inbox;
BEGIN
  IF submit.type IS NULL THEN
    PERFORM pawl.refuse('type', 'is missing');
  ELSIF submit.input IS NOT NULL AND submit.input_bytes IS NOT NULL THEN
    PERFORM pawl.refuse('input_bytes', 'is given together with "input"');
  ELSIF submit.delay <> interval '0' AND submit.run_at IS NOT NULL THEN
    PERFORM pawl.refuse('run_at', 'is given together with "delay"');
  ELSIF submit.expires_in IS NOT NULL AND submit.expires_at IS NOT NULL THEN
    PERFORM pawl.refuse('expires_at', 'is given together with "expires_in"');
  ELSIF submit.on_dead NOT IN ('skip', 'block') THEN
    PERFORM pawl.refuse('on_dead', 'is neither "skip" nor "block"');
  END IF;
  PERFORM pawl.check_name(f.field, f.name) FROM (VALUES
    ('type', submit.type), ('id', submit.id), ('method', submit.method), ('queue', submit.queue),
    ('key', submit.key), ('caller', submit.caller), ('parent', submit.parent), ('client', session_user)) f (field, name);
  PERFORM pawl.check_number('priority', submit.priority, -1000, 1000);
  PERFORM pawl.check_number('max_attempts', submit.max_attempts, 1, 1000);
  PERFORM pawl.check_number('max_lost', submit.max_lost, 1, 1000);
  PERFORM pawl.check_trace(submit.traceparent);
  v.created_at := now_us;
  v.client := session_user;
  v.id := coalesce(submit.id, pawl.new_id(now_us));
  v.type := submit.type;
  v.method := coalesce(submit.method, 'run');
  v.key := submit.key;
  v.queue := coalesce(submit.queue, 'default');
  v.priority := coalesce(submit.priority, 0);
  v.caller := submit.caller;
  v.parent := submit.parent;
  v.trace := submit.traceparent;
  v.tags := pawl.check_tags(submit.tags);
  v.form := CASE WHEN submit.input IS NOT NULL THEN 1 WHEN submit.input_bytes IS NOT NULL THEN 2 ELSE 0 END;
  v.input := coalesce(convert_to(submit.input::text, 'UTF8'), submit.input_bytes);
  IF octet_length(v.input) > 1048576 THEN
    RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
      MESSAGE = format('field "input": is %s bytes, limit 1048576', octet_length(v.input));
  END IF;
  -- What was asked for in so much time counts from here, not from when a node takes it over; 0 is no moment.
  v.run_at := coalesce(now_us + pawl.check_seconds('delay', extract(epoch FROM submit.delay), 0),
                       pawl.check_moment('run_at', submit.run_at));
  v.expires_at := coalesce(now_us + pawl.check_seconds('expires_in', extract(epoch FROM submit.expires_in), 0),
                           nullif(pawl.check_moment('expires_at', submit.expires_at), 0));
  options := jsonb_strip_nulls(jsonb_build_object(
    'max_attempts', nullif(submit.max_attempts, 3), 'max_lost', nullif(submit.max_lost, 5),
    'timeout_us', pawl.check_seconds('timeout', extract(epoch FROM submit.timeout), 1),
    'keep_us', pawl.check_seconds('keep', extract(epoch FROM submit.keep), 0),
    'on_dead', nullif(submit.on_dead, 'skip'))) || pawl.check_backoff(submit.backoff);
  IF options -> 'keep_us' = '0' THEN -- at once; 0 would be the setting's
    options := options || '{"keep_us": 1}';
  END IF;
  v.options := nullif(options, '{}')::text;

  IF submit.strict AND pawl.known(v) THEN
    RETURN v.id;
  END IF;
  INSERT INTO pawl.inbox (id, type, method, key, queue, form, input, priority, created_at, run_at, expires_at,
                          options, caller, client, parent, trace, tags)
  VALUES (v.id, v.type, v.method, v.key, v.queue, v.form, v.input, v.priority, v.created_at, v.run_at,
          v.expires_at, v.options, v.caller, v.client, v.parent, v.trace, v.tags);
  IF submit.notify THEN
    PERFORM pawl.hint_nodes();
  END IF;
  RETURN v.id;
END $$;

-- ---- Looking --------------------------------------------------------------------------------------

-- What a lease holds (model/lease.c packs it): version, count, and for each call flags and what they name, all of
-- it varints. before: the call of the same key that comes first in the lease.
CREATE FUNCTION pawl.held(packed bytea)
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
    IF flags & 64 > 0 THEN
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
  END LOOP;
  RETURN QUERY
  SELECT h.s, h.r, h.l::integer, h.p::integer, h.a::integer, h.o::integer, h.d::integer, nullif(h.no, 0),
         CASE WHEN h.k > 0 THEN lag(h.s) OVER (PARTITION BY h.k ORDER BY h.no) END
  FROM unnest(v_seq, v_run_at, v_lane, v_priority, v_attempts, v_lost, v_redrives, v_key, v_no)
       h (s, r, l, p, a, o, d, k, no);
END $$;

-- Every call by where it is. A call is in exactly one place, so the parts never overlap; each has its status as a
-- constant, so that a question about one status reads one place. Ids come from pawl.id, which is where their index is.
CREATE VIEW pawl.calls AS
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
       h.redrives, NULL, coalesce(t.worker, t.node), c.caller, c.client,
       c.parent, substr(c.trace, 4, 32), coalesce(c.tags, '{}')::jsonb,
       CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END,
       CASE c.form WHEN 2 THEN translate(encode(c.input, 'base64'), chr(10), '') END, NULL, NULL,
       pawl.moment(c.created_at), pawl.moment(h.run_at), pawl.moment(t.claimed_at), NULL, NULL,
       CASE WHEN h.redrives = 0 THEN pawl.moment(c.expires_at) END, NULL
FROM pawl.call c
JOIN pawl.id i ON i.id = c.id AND i.seq = c.seq
JOIN pawl.lease t ON t.low <= c.seq AND t.high >= c.seq
JOIN LATERAL pawl.held(t.held) h ON h.seq = c.seq
JOIN pawl.lane l ON l.lane = h.lane
LEFT JOIN pawl.outcome o ON o.seq = h.seq
LEFT JOIN pawl.outcome b ON b.seq = h.before
WHERE o.seq IS NULL AND (h.before IS NULL OR b.seq IS NOT NULL)
UNION ALL
-- Behind another of its key in the same lease: it has not begun.
SELECT i.id, c.seq, l.type, c.method, c.key, h.key_no, l.queue, h.priority, 'pending', h.attempts, h.lost,
       h.redrives, CASE WHEN h.attempts + h.lost > 0 THEN
         (SELECT a.error FROM pawl.attempt a WHERE a.seq = c.seq AND a.how IN (2, 3, 4, 8)
          ORDER BY a.no DESC LIMIT 1) END, coalesce(t.worker, t.node), c.caller, c.client,
       c.parent, substr(c.trace, 4, 32), coalesce(c.tags, '{}')::jsonb,
       CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END,
       CASE c.form WHEN 2 THEN translate(encode(c.input, 'base64'), chr(10), '') END, NULL, NULL,
       pawl.moment(c.created_at), pawl.moment(h.run_at), pawl.moment(t.claimed_at), NULL, NULL,
       CASE WHEN h.redrives = 0 THEN pawl.moment(c.expires_at) END, NULL
FROM pawl.call c
JOIN pawl.id i ON i.id = c.id AND i.seq = c.seq
JOIN pawl.lease t ON t.low <= c.seq AND t.high >= c.seq
JOIN LATERAL pawl.held(t.held) h ON h.seq = c.seq
JOIN pawl.lane l ON l.lane = h.lane
LEFT JOIN pawl.outcome b ON b.seq = h.before
WHERE h.before IS NOT NULL AND b.seq IS NULL
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

-- What the session's user submitted itself.
CREATE VIEW pawl.own_calls WITH (security_barrier) AS
SELECT * FROM pawl.calls WHERE client = session_user::text;

-- Submitted, committed, and not taken over: an id that means something else, or a call that breaks the contract.
CREATE VIEW pawl.inbox_conflicts AS
SELECT n, id, type, method, key, queue, client, code, reason,
       CASE form WHEN 1 THEN convert_from(input, 'UTF8') END AS input,
       pawl.moment(created_at) AS created_at, pawl.moment(refused_at) AS refused_at
FROM pawl.inbox WHERE refused_at IS NOT NULL;

-- ---- Tending --------------------------------------------------------------------------------------

-- Ended calls, whose outcomes the caller has locked, leave: only tombstones stay, and nothing of keys that have
-- nothing else.
CREATE FUNCTION pawl.bury(seqs bigint[], remember_us bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  keys text[] := ARRAY(SELECT DISTINCT c.key FROM pawl.call c WHERE c.seq = ANY (seqs) AND c.key IS NOT NULL);
BEGIN
  INSERT INTO pawl.gone (seq, id, status, created_at, finished_at, forget_at)
  SELECT c.seq, c.id, o.status, c.created_at, o.finished_at, o.keep_until + remember_us
  FROM pawl.outcome o JOIN pawl.call c ON c.seq = o.seq WHERE o.seq = ANY (seqs);
  DELETE FROM pawl.tag t USING pawl.call c, LATERAL jsonb_each_text(c.tags::jsonb) e
  WHERE c.seq = ANY (seqs) AND t.name = e.key AND t.value = e.value AND t.seq = c.seq;
  DELETE FROM pawl.attempt a WHERE a.seq = ANY (seqs);
  DELETE FROM pawl.outcome o WHERE o.seq = ANY (seqs);
  DELETE FROM pawl.call c WHERE c.seq = ANY (seqs);
  -- Locked first, looked at afterwards: what joined before the lock is seen, what joins later leaves a hint.
  keys := ARRAY(SELECT k.key FROM pawl.key k WHERE k.key = ANY (keys) AND k.state = 0 ORDER BY k.key
                FOR UPDATE SKIP LOCKED);
  DELETE FROM pawl.key k WHERE k.key = ANY (keys) AND k.held = 0 AND k.waiting = 0 AND k.later = 0
    AND NOT EXISTS (SELECT 1 FROM pawl.call c WHERE c.key = k.key)
    AND NOT EXISTS (SELECT 1 FROM pawl.object o WHERE o.key = k.key)
    AND NOT EXISTS (SELECT 1 FROM pawl.hint h WHERE h.key = k.key);
END $$;

-- What `pawl gc` does: ended calls past their retention become tombstones, tombstones past their time are forgotten.
-- How many calls went. One that ended under a lease which still stands for others stays until that is over.
CREATE FUNCTION pawl.cleanup_expired(remember interval DEFAULT '30 days') RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_us bigint := round(extract(epoch FROM clock_timestamp()) * 1000000);
  remember_us bigint := pawl.check_seconds('remember', extract(epoch FROM remember), 0);
  seqs bigint[];
  ids text[];
  removed bigint := 0;
BEGIN
  LOOP
    seqs := ARRAY(SELECT o.seq FROM pawl.outcome o WHERE o.keep_until <= now_us
                    AND NOT EXISTS (SELECT 1 FROM pawl.lease l WHERE l.token = o.token)
                  ORDER BY o.keep_until, o.seq LIMIT 1000 FOR UPDATE SKIP LOCKED);
    EXIT WHEN cardinality(seqs) = 0;
    PERFORM pawl.bury(seqs, remember_us);
    removed := removed + cardinality(seqs);
  END LOOP;
  LOOP
    WITH over AS (SELECT g.seq FROM pawl.gone g WHERE g.forget_at <= now_us ORDER BY g.forget_at, g.seq
                  LIMIT 1000 FOR UPDATE SKIP LOCKED),
         gone AS (DELETE FROM pawl.gone g USING over WHERE g.seq = over.seq RETURNING g.id)
    SELECT array_agg(gone.id) INTO ids FROM gone;
    EXIT WHEN ids IS NULL;
    DELETE FROM pawl.id i WHERE i.id = ANY (ids);
  END LOOP;
  RETURN removed;
END $$;

-- Leases that were claimed longer ago than this are over: the next sweep of any node, within a second, takes their
-- calls back, counted as lost, and whatever their owners say later is void. How many calls that is.
CREATE FUNCTION pawl.requeue_stuck(older_than interval) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_us bigint := round(extract(epoch FROM clock_timestamp()) * 1000000);
  before_us bigint := now_us - pawl.check_seconds('older_than', extract(epoch FROM older_than), 0);
  lease record;
  calls bigint := 0;
BEGIN
  IF older_than IS NULL THEN
    PERFORM pawl.refuse('older_than', 'is missing');
  END IF;
  FOR lease IN SELECT l.token, l.held FROM pawl.lease l
               WHERE l.claimed_at < before_us AND (l.until IS NULL OR l.until > now_us)
               ORDER BY l.token FOR UPDATE SKIP LOCKED LOOP
    UPDATE pawl.lease l SET until = now_us, rev = l.rev + 1 WHERE l.token = lease.token;
    calls := calls + (SELECT count(*) FROM pawl.held(lease.held) h
                      WHERE NOT EXISTS (SELECT 1 FROM pawl.outcome o WHERE o.seq = h.seq));
  END LOOP;
  IF calls > 0 THEN
    PERFORM pawl.hint_nodes();
  END IF;
  RETURN calls;
END $$;

-- What `pawl archive` does: calls that ended longer ago than this move to pawl.archive, and their ids stay known
-- exactly as long as if they had stayed. One moment, taken once. How many calls went.
CREATE FUNCTION pawl.archive(older_than interval, remember interval DEFAULT '30 days') RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_us bigint := round(extract(epoch FROM clock_timestamp()) * 1000000);
  before_us bigint := now_us - pawl.check_seconds('older_than', extract(epoch FROM older_than), 0);
  remember_us bigint := pawl.check_seconds('remember', extract(epoch FROM remember), 0);
  seqs bigint[];
  last bigint := 0;
  removed bigint := 0;
BEGIN
  IF older_than IS NULL THEN
    PERFORM pawl.refuse('older_than', 'is missing');
  END IF;
  LOOP
    seqs := ARRAY(SELECT o.seq FROM pawl.outcome o WHERE o.seq > last AND o.finished_at < before_us
                    AND o.keep_until < 9223372036854775807 -- that one blocks its key
                    AND NOT EXISTS (SELECT 1 FROM pawl.lease l WHERE l.token = o.token)
                  ORDER BY o.seq LIMIT 1000 FOR UPDATE SKIP LOCKED);
    EXIT WHEN cardinality(seqs) = 0;
    last := seqs[cardinality(seqs)];
    PERFORM pawl.archive_copy(seqs, now_us);
    PERFORM pawl.bury(seqs, remember_us);
    removed := removed + cardinality(seqs);
  END LOOP;
  RETURN removed;
END $$;

-- ---- Who may --------------------------------------------------------------------------------------

REVOKE ALL ON FUNCTION pawl.submit, pawl.cleanup_expired, pawl.requeue_stuck, pawl.archive, pawl.known, pawl.bury,
  pawl.hint_nodes FROM PUBLIC;
