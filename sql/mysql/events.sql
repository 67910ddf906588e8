-- The event service: status(id), events(id, value). No keys and no indexes: every read is a scan.

-- name: events_gate
-- in:   seconds bigint
-- out:  got int
-- why:  Without keys, the tables cannot stop two processes that start together from making two counters.
SELECT GET_LOCK(CONCAT('pawl-events ', SHA1(DATABASE())), $1);

-- name: events_ungate
SELECT RELEASE_LOCK(CONCAT('pawl-events ', SHA1(DATABASE())));

-- name: events_shape
-- out:  columns int, right int
SELECT COUNT(*), COALESCE(SUM(CONCAT(TABLE_NAME, '.', COLUMN_NAME, ' ', COLUMN_TYPE) IN
  ('status.id int', 'status.id int(11)', 'events.id int', 'events.id int(11)', 'events.value varchar(255)')), 0)
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('status', 'events');

-- name: events_make_status
CREATE TABLE IF NOT EXISTS status (id int) ENGINE = InnoDB;

-- name: events_make_events
CREATE TABLE IF NOT EXISTS events (id int, value varchar(255) NULL) ENGINE = InnoDB;

-- name: events_first
-- why:  A lost counter continues after the last event.
INSERT INTO status (id)
SELECT t.last FROM (SELECT COALESCE(MAX(id), 0) AS last FROM events) t WHERE NOT EXISTS (SELECT 1 FROM status);

-- name: events_counters
-- out:  n bigint
SELECT COUNT(*) FROM status;

-- name: events_patience
-- in:   lock bigint, look bigint: milliseconds
-- why:  Lock waits are limited to a second here, and reads have their own limit; see events_count.
uncounted DO $1 + $2;

-- name: events_counter
-- out:  id int, transaction bigint (0: it has no number one could ask for)
SELECT id, 0 FROM status FOR UPDATE;

-- name: events_count_to
-- in:   new bigint, old bigint
UPDATE status SET id = $1 WHERE id = $2;

-- name: events_add
-- in:   id bigint[], value text[]
INSERT INTO events (id, value) VALUES rows($1, $2);

-- name: events_count
-- in:   ms bigint
-- out:  n bigint
-- why:  MariaDB and MySQL each read their own limit, and treat the other one as a comment.
/*M! SET STATEMENT max_statement_time = $1 / 1000 FOR */ SELECT /*+ MAX_EXECUTION_TIME($1) */ COUNT(*) FROM events;

-- name: events_find
-- in:   id bigint[], ms bigint
-- out:  id int, value text
/*M! SET STATEMENT max_statement_time = $2 / 1000 FOR */ SELECT /*+ MAX_EXECUTION_TIME($2) */ id, value
FROM events WHERE id IN (rows($1));

-- name: events_any
-- in:   without bigint[]
-- out:  id int
-- why:  A worker that found nothing the last time looks without locking anything.
SELECT id FROM events WHERE value IS NULL AND id > 0 AND id NOT IN (rows($1)) LIMIT 1;

-- name: events_take
-- in:   max bigint, without bigint[]
-- out:  id int, place text
-- why:  READ COMMITTED releases the locks of rows that do not match; SKIP LOCKED skips rows that others have locked.
SELECT id, '' FROM events WHERE value IS NULL AND id > 0 AND id NOT IN (rows($2)) LIMIT $1 FOR UPDATE SKIP LOCKED;

-- name: events_put
-- in:   id bigint[], place text[], value text[], n bigint
-- why:  One scan for all of them, which ends with the last. On a single table: then a locked row is waited for only
--       when it matches.
UPDATE events SET value = CASE id each  {WHEN $1 THEN $3} END WHERE id IN (rows($1)) AND value IS NULL LIMIT $4;
