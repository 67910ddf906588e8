-- Schedules and their ticks.

-- name: cron_lock
-- in:   name text[], sorted
-- out:  name, spec, version, paused, zone_data, due_at, next_at, next_local, last_at, last_local, last_id, last_seq,
--       waiting_at, created_at, updated_at
-- why:  Only nodes lock these rows, and never for long.
each SELECT name, spec, version, paused, zone_data, due_at, next_at, next_local, last_at, last_local, last_id, last_seq,
       waiting_at, created_at, updated_at
FROM pawl.schedule WHERE name = $1:text[] FOR UPDATE;

-- name: cron_due
-- in:   now bigint, max int
-- out:  name, length of spec
-- why:  What another node decides is skipped: it is decided once.
SELECT name, length(spec) FROM pawl.schedule WHERE due_at <= $1:int ORDER BY due_at LIMIT $2:int
FOR UPDATE SKIP LOCKED;

-- name: cron_next
-- out:  due_at bigint
SELECT due_at FROM pawl.schedule WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1;

-- name: cron_look
-- in:   now bigint; 0: the server's clock
-- out:  now bigint, due_at bigint
-- why:  cron_next for a process that waits: the clock in the same statement, without a transaction.
SELECT $1:now, (SELECT due_at FROM pawl.schedule WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1);

-- name: cron_of_call
-- in:   seq bigint[]
-- out:  name
-- why:  Waits for a node that ticks it: it may just have read that this call has not ended.
each SELECT name FROM pawl.schedule WHERE last_seq = $1:int[] FOR UPDATE;

-- name: cron_call_open
-- in:   seq bigint[]
-- out:  seq: those that have not ended
each SELECT c.seq FROM pawl.call c LEFT JOIN pawl.outcome o ON o.seq = c.seq
WHERE c.seq = $1:int[] AND o.seq IS NULL;

-- name: cron_old_zone
-- in:   after text, data text, max int
-- out:  name
-- why:  Walks over all schedules, when the data of time zones changed on a node.
SELECT name FROM pawl.schedule WHERE name > $1:text AND zone_data <> $2:text AND zone_data <> 'UTC'
ORDER BY name LIMIT $3:int FOR UPDATE SKIP LOCKED;

-- name: cron_add
-- why:  Another transaction may have stored the name: then none is added, and the group is repeated.
INSERT ONCE INTO pawl.schedule (name, spec, version, paused, zone_data, due_at, next_at, next_local, last_at, last_local,
  last_id, last_seq, waiting_at, created_at, updated_at)
rows($1:text[], $2:text[], $3:int[], $4:int[], $5:text[], $6:int[], $7:int[], $8:int[], $9:int[], $10:int[], $11:text[],
  $12:int[], $13:int[], $14:int[], $15:int[]);

-- name: cron_put
-- in:   as cron_add
each UPDATE pawl.schedule SET spec = $2:text[], version = $3:int[], paused = $4:int[], zone_data = $5:text[],
  due_at = $6:int[], next_at = $7:int[], next_local = $8:int[], last_at = $9:int[], last_local = $10:int[],
  last_id = $11:text[], last_seq = $12:int[], waiting_at = $13:int[], created_at = $14:int[],
  updated_at = $15:int[]
WHERE name = $1:text[];

-- name: cron_move
-- in:   name, zone_data, due_at, next_at, next_local, last_at, last_local, last_id, last_seq, waiting_at,
--       paused
-- why:  Everything that a tick changes; the spec stays where it is.
each UPDATE pawl.schedule SET zone_data = $2:text[], due_at = $3:int[], next_at = $4:int[], next_local = $5:int[],
  last_at = $6:int[], last_local = $7:int[], last_id = $8:text[], last_seq = $9:int[], waiting_at = $10:int[],
  paused = $11:int[]
WHERE name = $1:text[];

-- name: cron_remove
-- in:   name text[]
each DELETE FROM pawl.schedule WHERE name = $1:text[];

-- name: cron_read
-- in:   name text
-- out:  as cron_lock
SELECT name, spec, version, paused, zone_data, due_at, next_at, next_local, last_at, last_local, last_id, last_seq,
       waiting_at, created_at, updated_at
FROM pawl.schedule WHERE name = $1:text;

-- name: cron_lengths
-- in:   after text, max int
-- out:  length of spec
-- why:  A page is bounded before its rows are read.
SELECT length(spec) FROM pawl.schedule WHERE name > $1:text ORDER BY name LIMIT $2:int;

-- name: cron_list
-- in:   after text, max int
-- out:  as cron_lock
SELECT name, spec, version, paused, zone_data, due_at, next_at, next_local, last_at, last_local, last_id, last_seq,
       waiting_at, created_at, updated_at
FROM pawl.schedule WHERE name > $1:text ORDER BY name LIMIT $2:int;

-- name: cron_ahead
-- in:   time bigint
-- out:  count, name of the first, the latest last_at: of those that ticked for a later time
-- why:  For doctor, which may read all of them; the spec is not for every account.
SELECT count(*), min(name), max(last_at) FROM pawl.schedule WHERE last_at > $1:int;

-- name: tick_add
-- why:  A tick is recorded once.
INSERT ONCE INTO pawl.tick (name, at, no, kind, reason, zone, count, call_id, node, created_at)
rows($1:text[], $2:int[], $3:int[], $4:int[], $5:text[], $6:text[], $7:int[], $8:text[], $9:text[], $10:int[]);

-- name: tick_list
-- in:   name text, at bigint, no bigint, max int
-- out:  at, no, kind, reason, zone, count, call_id, node, created_at
SELECT at, no, kind, reason, zone, count, call_id, node, created_at FROM pawl.tick
WHERE name = $1:text AND at <= $2:int AND (at < $2:int OR no < $3:int) ORDER BY at DESC, no DESC LIMIT $4:int;

-- name: tick_last
-- in:   name text[]
-- out:  as tick_list, then name
-- why:  The newest of each name. A page of schedules costs one statement, and of each name one row is read.
each SELECT at, no, kind, reason, zone, count, call_id, node, created_at, name FROM pawl.tick
WHERE name = $1:text[] ORDER BY at DESC, no DESC LIMIT 1;

-- name: tick_old
-- in:   before bigint, max int
-- out:  name, at, no
SELECT name, at, no FROM pawl.tick WHERE created_at <= $1:int ORDER BY created_at LIMIT $2:int
FOR UPDATE SKIP LOCKED;

-- name: tick_remove
-- in:   name text[], at bigint[], no bigint[]
each DELETE FROM pawl.tick WHERE name = $1:text[] AND at = $2:int[] AND no = $3:int[];
