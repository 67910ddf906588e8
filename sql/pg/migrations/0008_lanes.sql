-- A lane is a set of (queue, type, needs, gate): needs are the capabilities that its calls need, gate the limits that
-- apply to them (none yet), each as sorted names with newlines between them. A lane that has no calls is retired
-- (retired_at, microseconds; 0: in use), and removed an hour later, so numbers have gaps.
ALTER TABLE pawl.lane
  ADD COLUMN needs      text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN gate       text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN retired_at bigint NOT NULL DEFAULT 0,
  DROP CONSTRAINT lane_queue_type_key,
  ADD CONSTRAINT lane_names UNIQUE (queue, type, needs, gate);

-- Capabilities of a node's workers, and of an archived call; the same form.
ALTER TABLE pawl.node ADD COLUMN has text COLLATE "C";
ALTER TABLE pawl.archive ADD COLUMN needs text COLLATE "C";

CREATE OR REPLACE FUNCTION pawl.archive_copy(seqs bigint[], now_us bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  copied bigint;
BEGIN
  INSERT INTO pawl.archive
  SELECT c.seq, c.id, pawl.state_name(o.status), l.queue, l.type, c.method, c.key, nullif(o.key_no, 0),
         CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END, CASE c.form WHEN 2 THEN c.input END,
         CASE o.form WHEN 1 THEN convert_from(o.result, 'UTF8') END, CASE o.form WHEN 2 THEN o.result END,
         o.error, o.attempts, o.lost, o.redrives, c.priority, o.node, pawl.moment(c.created_at),
         pawl.moment(c.run_at), pawl.moment(o.started_at), pawl.moment(o.finished_at), pawl.moment(now_us),
         c.caller, c.client, c.parent, c.trace, c.tags, c.options, nullif(l.needs, '')
  FROM pawl.call c JOIN pawl.outcome o ON o.seq = c.seq JOIN pawl.lane l ON l.lane = c.lane
  WHERE c.seq = ANY (seqs);
  GET DIAGNOSTICS copied = ROW_COUNT;
  RETURN copied;
END $$;

-- Capabilities as the option "needs" of a row of the inbox: sorted, each once; null when there are none.
CREATE FUNCTION pawl.check_needs(needs text[]) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(cardinality(needs), 0) = 0 THEN
    RETURN NULL;
  ELSIF cardinality(needs) > 16 THEN
    PERFORM pawl.refuse('needs'::text, format('has %s names, limit 16', cardinality(needs)));
  ELSIF EXISTS (SELECT FROM unnest(needs) u (name) WHERE (u.name ~ '^[A-Za-z0-9_.:-]{1,64}$') IS NOT TRUE) THEN
    PERFORM pawl.refuse('needs'::text, 'a name is not 1..64 letters, digits, "_", "-", "." and ":"'::text);
  ELSIF NOT EXISTS (SELECT FROM pawl.migration m WHERE m.number = 8 AND m.finished <> 0) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE =
      'field "needs": every node must run this version first: run pawl migrate finish';
  END IF;
  RETURN (SELECT jsonb_agg(v.name ORDER BY v.name COLLATE "C")
          FROM (SELECT DISTINCT u.name FROM unnest(needs) u (name)) v);
END $$;

-- A function with one more argument is another function: the old one is dropped, and the new one is granted to the
-- same roles.
DO $$ BEGIN
  PERFORM set_config('pawl_step.grants', coalesce((
    SELECT string_agg(format('GRANT EXECUTE ON FUNCTION pawl.submit TO %s%s',
                             CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
                             CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END), '; ')
    FROM pg_proc p, aclexplode(p.proacl) a
    WHERE p.oid = 'pawl.submit'::regproc AND a.grantee <> p.proowner), ''), true);
END $$;
DROP FUNCTION pawl.submit(text, text, json, text, text, text, integer, interval, timestamptz, integer, integer, jsonb,
  interval, interval, timestamptz, interval, text, text, text, jsonb, text, bytea, boolean, boolean);
CREATE FUNCTION pawl.submit(
  type text, method text DEFAULT 'run', input json DEFAULT NULL, id text DEFAULT NULL, key text DEFAULT NULL,
  queue text DEFAULT 'default', priority integer DEFAULT 0, delay interval DEFAULT NULL,
  run_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT 3, max_lost integer DEFAULT 5,
  backoff jsonb DEFAULT NULL, timeout interval DEFAULT NULL, expires_in interval DEFAULT NULL,
  expires_at timestamptz DEFAULT NULL, keep interval DEFAULT NULL, caller text DEFAULT NULL,
  parent text DEFAULT NULL, traceparent text DEFAULT NULL, tags jsonb DEFAULT NULL, on_dead text DEFAULT 'skip',
  input_bytes bytea DEFAULT NULL, notify boolean DEFAULT false, strict boolean DEFAULT false,
  needs text[] DEFAULT NULL) RETURNS text
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
    'on_dead', nullif(submit.on_dead, 'skip'), 'needs', pawl.check_needs(submit.needs)))
    || pawl.check_backoff(submit.backoff);
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
REVOKE ALL ON FUNCTION pawl.submit, pawl.check_needs FROM PUBLIC;
DO $$ BEGIN
  IF current_setting('pawl_step.grants') <> '' THEN
    EXECUTE current_setting('pawl_step.grants');
  END IF;
END $$;

-- finish
-- An older program serves lanes without looking at their needs, and reads a missing number as damage: lanes with needs
-- are made, and lanes are removed, only when no such program is left.
UPDATE pawl.meta SET value = greatest(value, 8) WHERE name = 'min_version';
