-- The event service: status(id), events(id, value). No keys and no indexes: every read is a scan.

-- name: events_gate
-- in:   seconds bigint
-- out:  got int
-- why:  Without keys, the tables cannot stop two processes that start together from making two counters. The lock
--       lasts until the transaction ends; lock_timeout limits the wait.
SELECT 1::bigint FROM (SELECT pg_advisory_xact_lock(hashtextextended('pawl events', 0) # $1::bigint # $1::bigint)) t;

-- name: events_ungate
SELECT 1::bigint;

-- name: events_shape
-- out:  columns bigint, right bigint
SELECT count(*), count(*) FILTER (WHERE (c.relname = 'status' AND a.attname = 'id' AND a.atttypid = 'int4'::regtype) OR
  (c.relname = 'events' AND a.attname = 'id' AND a.atttypid = 'int4'::regtype) OR
  (c.relname = 'events' AND a.attname = 'value' AND format_type(a.atttypid, a.atttypmod) = 'character varying(255)'))
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE a.attrelid IN (to_regclass('status'), to_regclass('events')) AND a.attnum > 0 AND NOT a.attisdropped;

-- name: events_make_status
CREATE TABLE IF NOT EXISTS status (id int);

-- name: events_make_events
CREATE TABLE IF NOT EXISTS events (id int, value varchar(255) NULL);

-- name: events_first
-- why:  A lost counter continues after the last event.
INSERT INTO status (id)
SELECT t.last FROM (SELECT coalesce(max(id), 0) AS last FROM events) t WHERE NOT EXISTS (SELECT 1 FROM status);

-- name: events_counters
-- out:  n bigint
SELECT count(*) FROM status;

-- name: events_patience
-- in:   lock bigint, look bigint: milliseconds
-- out:  what was set
SELECT set_config('lock_timeout', $1::bigint || 'ms', true), set_config('statement_timeout', $2::bigint || 'ms', true);

-- name: events_counter
-- out:  id bigint, transaction bigint
SELECT id::bigint, pg_current_xact_id()::text::bigint FROM status FOR UPDATE;

-- name: events_count_to
-- in:   new bigint, old bigint
UPDATE status SET id = $1::bigint::int WHERE id = $2::bigint::int;

-- name: events_add
-- in:   id bigint[], value text[]
INSERT INTO events (id, value) SELECT v.id::int, v.value FROM unnest($1::bigint[], $2::text[]) AS v (id, value);

-- name: events_fate
-- in:   transaction bigint
-- out:  committed bigint; null: it has not ended, or nobody remembers
SELECT CASE pg_xact_status($1::bigint::text::xid8) WHEN 'committed' THEN 1 WHEN 'aborted' THEN 0 END::bigint;

-- name: events_count
-- in:   ms bigint
-- out:  n bigint
SELECT count(*) FROM events WHERE $1::bigint > 0;

-- name: events_find
-- in:   id bigint[], ms bigint
-- out:  id bigint, value text
SELECT id::bigint, value::text FROM events WHERE id::bigint = ANY($1::bigint[]) AND $2::bigint > 0;

-- name: events_any
-- in:   without bigint[]
-- out:  id bigint
-- why:  A worker that found nothing the last time looks without locking anything.
SELECT id::bigint FROM events WHERE value IS NULL AND id > 0 AND NOT (id::bigint = ANY($1::bigint[])) LIMIT 1;

-- name: events_take
-- in:   max bigint, without bigint[]
-- out:  id bigint, place text
SELECT id::bigint, ctid::text FROM events WHERE value IS NULL AND id > 0 AND NOT (id::bigint = ANY($2::bigint[]))
LIMIT $1::bigint FOR UPDATE SKIP LOCKED;

-- name: events_put
-- in:   id bigint[], place text[], value text[], n bigint
-- why:  The rows are locked by us and have not moved: no second scan.
UPDATE events e SET value = v.value FROM unnest($1::bigint[], $2::text[], $3::text[]) AS v (id, place, value)
WHERE e.ctid = v.place::tid AND e.id = v.id AND e.value IS NULL AND $4::bigint > 0;
