-- Schedules: statements whose index the server may not choose by itself. What they do is said in sql/all/cron.sql.

-- name: cron_due
SELECT name, LENGTH(spec) FROM pawl_schedule FORCE INDEX (schedule_due) WHERE due_at <= $1 ORDER BY due_at LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: cron_next
SELECT due_at FROM pawl_schedule FORCE INDEX (schedule_due) WHERE due_at > 0 ORDER BY due_at LIMIT 1;

-- name: cron_look
SELECT IF($1 > 0, $1, CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)),
  (SELECT due_at FROM pawl_schedule FORCE INDEX (schedule_due) WHERE due_at > 0 ORDER BY due_at LIMIT 1);

-- name: cron_of_call
each{SELECT name FROM pawl_schedule FORCE INDEX (schedule_last) WHERE last_seq = $1 FOR UPDATE};

-- name: tick_last
SELECT at, no, kind, reason, zone, count, call_id, node, created_at, name
FROM (each UNION ALL {(SELECT at, no, kind, reason, zone, count, call_id, node, created_at, name
                       FROM pawl_tick FORCE INDEX (PRIMARY)
                       WHERE name = $1 ORDER BY at DESC, no DESC LIMIT 1)}) t;

-- name: tick_old
SELECT name, at, no FROM pawl_tick FORCE INDEX (tick_created) WHERE created_at <= $1 ORDER BY created_at LIMIT $2
FOR UPDATE SKIP LOCKED;
