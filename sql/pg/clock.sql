-- The server's clock and its sequence numbers.

-- name: clock
-- out:  now bigint
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: settings
-- in:   local int, idle bigint
-- out:  now bigint, and what was set
-- why:  Plans must use indexes: the hot tables are empty whenever the planner's statistics are taken. A wait for a
--       row that is longer than lock_timeout is for another application's transaction. A process that was stopped in
--       a transaction keeps its row locks for `idle` milliseconds at most. Combined with the clock, because behind a
--       pooler each transaction begins with this.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
  set_config('lock_timeout', '100ms', l), set_config('statement_timeout', '60s', l),
  set_config('idle_in_transaction_session_timeout', $2::bigint::text || 'ms', l), set_config('enable_seqscan', 'off', l),
  set_config('enable_bitmapscan', 'off', l), set_config('enable_hashjoin', 'off', l),
  set_config('enable_mergejoin', 'off', l), set_config('jit', 'off', l),
  set_config('plan_cache_mode', 'force_generic_plan', l), set_config('timezone', 'UTC', l),
  set_config('standard_conforming_strings', 'on', l), set_config('bytea_output', 'hex', l),
  set_config('client_min_messages', 'warning', l),
  CASE WHEN current_setting('server_version_num')::int >= 140000 THEN set_config('idle_session_timeout', '0', l) END
FROM (SELECT $1::bigint = 1 AS l) t;

-- name: version
-- out:  ended bigint
-- why:  How many transactions with a transaction id have ended.
SELECT pg_snapshot_xmax(s)::text::bigint - (SELECT count(*) FROM pg_snapshot_xip(s))
FROM (SELECT pg_current_snapshot() AS s) t;

-- name: seq_next
-- in:   n bigint
-- out:  seq bigint
SELECT nextval('pawl.seq') FROM generate_series(1, $1::bigint);

-- name: version_next
-- in:   n bigint
-- out:  version bigint
SELECT nextval('pawl.version') FROM generate_series(1, $1::bigint);

-- name: standby_wait
-- in:   pid bigint; 0: any session of this user
-- out:  works bigint, waits bigint
-- why:  To the waiting client, a commit that waits for a synchronous standby, a slow commit and a dead connection
--       look alike. This is asked on another connection. An idle session has answered: its answer was lost.
SELECT count(*), count(*) FILTER (WHERE wait_event = 'SyncRep') FROM pg_stat_activity
WHERE state <> 'idle' AND usename = current_user AND pid <> pg_backend_pid()
  AND ($1::bigint = 0 OR pid = $1::bigint);
