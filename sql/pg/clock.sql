-- The server's clock, and its numbers.

-- name: clock
-- out:  now bigint
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: settings
-- in:   local int, idle bigint
-- out:  now bigint, and what was set
-- why:  Plans are pinned to indexes: the hot tables are empty whenever the planner's statistics are taken. Whoever
--       waits longer than lock_timeout for a row waits for a stranger's transaction. A process that was stopped
--       in the middle of one holds its rows for `idle` milliseconds, no longer. With the clock, because behind a pooler each
--       transaction begins with this.
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
-- why:  How many transactions with a number have ended.
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
-- why:  A commit that waits for a synchronous standby, a slow one and a dead connection look alike to who waits for
--       the answer. Asked on another connection. A session that is idle has answered: its answer was lost.
SELECT count(*), count(*) FILTER (WHERE wait_event = 'SyncRep') FROM pg_stat_activity
WHERE state <> 'idle' AND usename = current_user AND pid <> pg_backend_pid()
  AND ($1::bigint = 0 OR pid = $1::bigint);
