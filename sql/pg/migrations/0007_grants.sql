-- Functions that run with their owner's rights (SECURITY DEFINER) call others of this schema with arguments of exactly
-- the declared types. A call with a literal, or with an integer where numeric is declared, is resolved by best match:
-- a role that may create functions in this schema could add a better one, and it would run as the owner. An exact
-- match always wins. Only the casts differ from step 3. `pawl migrate grants` gives no role CREATE, and takes back
-- what older versions granted. An older program goes on with these.

-- Called from views, with the rights and the search_path of the session: pin the path, so that what the rows of
-- others hold is not handed to functions of the session's own.
ALTER FUNCTION pawl.held(bytea) SET search_path = pg_catalog, pg_temp;

CREATE OR REPLACE FUNCTION pawl.check_name(field text, name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF name = '' THEN
    PERFORM pawl.refuse(field, 'is empty'::text);
  ELSIF octet_length(name) > 255 THEN
    PERFORM pawl.refuse(field, 'is longer than 255 bytes'::text);
  ELSIF pawl.has_control(name) THEN
    PERFORM pawl.refuse(field, 'has a control character'::text);
  ELSIF name IN ('.', '..') THEN
    PERFORM pawl.refuse(field, 'must not be "." or ".."'::text);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION pawl.check_number(field text, n numeric, low numeric, high numeric) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF n NOT BETWEEN low AND high THEN
    PERFORM pawl.refuse(field, format('is %s, not in %s..%s', n, low, high));
  END IF;
END $$;

CREATE OR REPLACE FUNCTION pawl.check_seconds(field text, s numeric, low numeric) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  IF s * 1000000 < low OR s > 3162240000 OR s = 'NaN' THEN
    PERFORM pawl.refuse(field, format('is not %s 0 and at most 3162240000 s',
                                      CASE WHEN low > 0 THEN 'above' ELSE 'at least' END));
  END IF;
  RETURN round(s * 1000000);
END $$;

CREATE OR REPLACE FUNCTION pawl.check_moment(field text, t timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT isfinite(t) OR extract(year FROM t AT TIME ZONE 'UTC') NOT BETWEEN 1 AND 9999 THEN
    PERFORM pawl.refuse(field, 'is not in the years 0001 to 9999'::text);
  END IF;
  RETURN round(extract(epoch FROM t) * 1000000);
END $$;

CREATE OR REPLACE FUNCTION pawl.check_trace(t text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF t !~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' OR t ~ '^00-0{32}' OR t ~ '^00-.{32}-0{16}' THEN
    PERFORM pawl.refuse('traceparent'::text, 'is not 00-(32 hex)-(16 hex)-(2 hex)'::text);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION pawl.check_tags(tags jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  tag record;
  n integer := 0;
BEGIN
  IF tags IS NULL OR tags = '{}' THEN
    RETURN NULL;
  ELSIF jsonb_typeof(tags) <> 'object' THEN
    PERFORM pawl.refuse('tags'::text, 'is not an object'::text);
  END IF;
  FOR tag IN SELECT t.key AS name, t.value #>> '{}' AS value, jsonb_typeof(t.value) AS kind
             FROM jsonb_each(tags) t LOOP
    n := n + 1;
    IF n > 16 THEN
      PERFORM pawl.refuse('tags'::text, 'has more than 16 tags'::text);
    ELSIF tag.kind <> 'string' THEN
      PERFORM pawl.refuse('tags'::text, format('"%s" is not a string', tag.name));
    ELSIF tag.name = '' OR octet_length(tag.name) > 64 OR pawl.has_control(tag.name::text) THEN
      PERFORM pawl.refuse('tags'::text, 'a name is not 1 to 64 bytes without control characters'::text);
    ELSIF octet_length(tag.value) > 255 OR pawl.has_control(tag.value::text) THEN
      PERFORM pawl.refuse('tags'::text,
        format('the value of "%s" is not 255 bytes at most, without control characters', tag.name));
    END IF;
  END LOOP;
  RETURN tags::text;
END $$;

CREATE OR REPLACE FUNCTION pawl.check_backoff(backoff jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  part record;
  made jsonb := '{}';
BEGIN
  IF backoff IS NULL THEN
    RETURN made;
  ELSIF jsonb_typeof(backoff) <> 'object' THEN
    PERFORM pawl.refuse('backoff'::text, 'is not an object'::text);
  END IF;
  FOR part IN SELECT b.key AS name, b.value, jsonb_typeof(b.value) AS kind FROM jsonb_each(backoff) b LOOP
    IF part.name NOT IN ('base', 'factor', 'max', 'jitter') THEN
      PERFORM pawl.refuse('backoff.' || part.name::text, 'is unknown'::text);
    ELSIF part.kind <> 'number' THEN
      PERFORM pawl.refuse('backoff.' || part.name::text, 'is not a number'::text);
    ELSIF part.name = 'factor' THEN
      PERFORM pawl.check_number('backoff.factor'::text, part.value::numeric, 1::numeric, 1000::numeric);
      made := made || jsonb_build_object('backoff_factor', part.value);
    ELSIF part.name = 'jitter' THEN
      PERFORM pawl.check_number('backoff.jitter'::text, part.value::numeric, 0::numeric, 1::numeric);
      made := made || jsonb_build_object('backoff_jitter', part.value);
    ELSE
      made := made || jsonb_build_object('backoff_' || part.name || '_us',
                pawl.check_seconds('backoff.' || part.name::text, part.value::numeric, 0::numeric));
    END IF;
  END LOOP;
  RETURN made;
END $$;

CREATE OR REPLACE FUNCTION pawl.known(asked pawl.inbox) RETURNS boolean
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
        MESSAGE = format(CASE WHEN EXISTS (SELECT FROM pawl.archive a WHERE a.seq = number)
                    THEN 'call "%s" has ended and was archived: pawl get --archived reads it'
                    ELSE 'call "%s" has ended and is no longer kept' END, asked.id);
    END IF;
  ELSE
    SELECT i.type, i.method, i.key, i.form, i.input INTO stands
    FROM pawl.inbox i WHERE i.id = asked.id AND i.refused_at IS NULL ORDER BY i.n LIMIT 1;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
  END IF;
  IF stands.type <> asked.type OR stands.method <> asked.method OR stands.key IS DISTINCT FROM asked.key OR
     NOT pawl.same_input(stands.form::integer, stands.input::bytea, asked.form, asked.input) THEN
    RAISE EXCEPTION USING ERRCODE = 'unique_violation',
      MESSAGE = format('call "%s" already exists with other content', asked.id);
  END IF;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION pawl.submit(
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
    PERFORM pawl.refuse('type'::text, 'is missing'::text);
  ELSIF submit.input IS NOT NULL AND submit.input_bytes IS NOT NULL THEN
    PERFORM pawl.refuse('input_bytes'::text, 'is given together with "input"'::text);
  ELSIF submit.delay <> interval '0' AND submit.run_at IS NOT NULL THEN
    PERFORM pawl.refuse('run_at'::text, 'is given together with "delay"'::text);
  ELSIF submit.expires_in IS NOT NULL AND submit.expires_at IS NOT NULL THEN
    PERFORM pawl.refuse('expires_at'::text, 'is given together with "expires_in"'::text);
  ELSIF submit.on_dead NOT IN ('skip', 'block') THEN
    PERFORM pawl.refuse('on_dead'::text, 'is neither "skip" nor "block"'::text);
  END IF;
  PERFORM pawl.check_name(f.field::text, f.name::text) FROM (VALUES
    ('type', submit.type), ('id', submit.id), ('method', submit.method), ('queue', submit.queue),
    ('key', submit.key), ('caller', submit.caller), ('parent', submit.parent),
    ('client', session_user::text)) f (field, name);
  PERFORM pawl.check_number('priority'::text, submit.priority::numeric, (-1000)::numeric, 1000::numeric);
  PERFORM pawl.check_number('max_attempts'::text, submit.max_attempts::numeric, 1::numeric, 1000::numeric);
  PERFORM pawl.check_number('max_lost'::text, submit.max_lost::numeric, 1::numeric, 1000::numeric);
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
  v.run_at := coalesce(
    now_us + pawl.check_seconds('delay'::text, extract(epoch FROM submit.delay)::numeric, 0::numeric),
    pawl.check_moment('run_at'::text, submit.run_at));
  v.expires_at := coalesce(
    now_us + pawl.check_seconds('expires_in'::text, extract(epoch FROM submit.expires_in)::numeric, 0::numeric),
    nullif(pawl.check_moment('expires_at'::text, submit.expires_at), 0));
  options := jsonb_strip_nulls(jsonb_build_object(
    'max_attempts', nullif(submit.max_attempts, 3), 'max_lost', nullif(submit.max_lost, 5),
    'timeout_us', pawl.check_seconds('timeout'::text, extract(epoch FROM submit.timeout)::numeric, 1::numeric),
    'keep_us', pawl.check_seconds('keep'::text, extract(epoch FROM submit.keep)::numeric, 0::numeric),
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

CREATE OR REPLACE FUNCTION pawl.cleanup_expired(remember interval DEFAULT '30 days') RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_us bigint := round(extract(epoch FROM clock_timestamp()) * 1000000);
  remember_us bigint := pawl.check_seconds('remember'::text, extract(epoch FROM remember)::numeric, 0::numeric);
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

CREATE OR REPLACE FUNCTION pawl.requeue_stuck(older_than interval) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_us bigint := round(extract(epoch FROM clock_timestamp()) * 1000000);
  before_us bigint := now_us
    - pawl.check_seconds('older_than'::text, extract(epoch FROM older_than)::numeric, 0::numeric);
  lease record;
  calls bigint := 0;
BEGIN
  IF older_than IS NULL THEN
    PERFORM pawl.refuse('older_than'::text, 'is missing'::text);
  END IF;
  FOR lease IN SELECT l.token, l.held FROM pawl.lease l
               WHERE l.claimed_at < before_us AND (l.until IS NULL OR l.until > now_us)
               ORDER BY l.token FOR UPDATE SKIP LOCKED LOOP
    -- An end before any timeout of its calls: they count as lost, not as timed out.
    UPDATE pawl.lease l SET until = l.claimed_at, rev = l.rev + 1 WHERE l.token = lease.token;
    calls := calls + (SELECT count(*) FROM pawl.held(lease.held::bytea) h
                      WHERE NOT EXISTS (SELECT 1 FROM pawl.outcome o WHERE o.seq = h.seq));
  END LOOP;
  IF calls > 0 THEN
    PERFORM pawl.hint_nodes();
  END IF;
  RETURN calls;
END $$;

CREATE OR REPLACE FUNCTION pawl.archive(older_than interval, remember interval DEFAULT '30 days') RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now_us bigint := round(extract(epoch FROM clock_timestamp()) * 1000000);
  before_us bigint := now_us
    - pawl.check_seconds('older_than'::text, extract(epoch FROM older_than)::numeric, 0::numeric);
  remember_us bigint := pawl.check_seconds('remember'::text, extract(epoch FROM remember)::numeric, 0::numeric);
  seqs bigint[];
  last bigint := 0;
  removed bigint := 0;
BEGIN
  IF older_than IS NULL THEN
    PERFORM pawl.refuse('older_than'::text, 'is missing'::text);
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
