-- The event service: status(id), events(id, value). No keys and no indexes: every read is a scan.

-- name: events_gate
-- in:   seconds int
-- out:  got int
-- why:  The transaction that asks has the write lock.
SELECT ?1 >= 0;

-- name: events_ungate
SELECT 1;

-- name: events_shape
-- out:  columns int, right int
SELECT count(*), coalesce(sum(t || '.' || name || ' ' || lower(type) IN
  ('status.id int', 'events.id int', 'events.value varchar(255)')), 0)
FROM (SELECT 'status' AS t, name, type FROM pragma_table_info('status')
      UNION ALL SELECT 'events', name, type FROM pragma_table_info('events'));

-- name: events_make_status
CREATE TABLE IF NOT EXISTS status (id int);

-- name: events_make_events
CREATE TABLE IF NOT EXISTS events (id int, value varchar(255) NULL);

-- name: events_first
-- why:  A lost counter continues after the last event.
INSERT INTO status (id)
SELECT t.last FROM (SELECT coalesce(max(id), 0) AS last FROM events) t WHERE NOT EXISTS (SELECT 1 FROM status);

-- name: events_counters
-- out:  n int
SELECT count(*) FROM status;

-- name: events_patience
-- in:   lock int, look int: milliseconds
-- why:  The write lock has its own timeout; patience() sets the connection's.
SELECT ?1, patience(?2);

-- name: events_counter
-- out:  id int, transaction int (0: it has no number one could ask for)
SELECT id, 0 FROM status;

-- name: events_count_to
-- in:   new int, old int
UPDATE status SET id = ?1 WHERE id = ?2;

-- name: events_add
-- in:   id int, value text, once a row
INSERT INTO events (id, value) VALUES (?1, ?2);

-- name: events_count
-- in:   ms int
-- out:  n int
SELECT count(*) FROM events WHERE ?1 > 0;

-- name: events_find
-- in:   id as a JSON array, ms int
-- out:  id int, value text
SELECT id, value FROM events WHERE id IN (SELECT value FROM json_each(?1)) AND ?2 > 0;

-- name: events_any
-- in:   without as a JSON array
-- out:  id int
-- why:  A poll that finds nothing must not take the write lock.
SELECT id FROM events WHERE value IS NULL AND id > 0 AND id NOT IN (SELECT value FROM json_each(?1)) LIMIT 1;

-- name: events_take
-- in:   max int, without as a JSON array
-- out:  id int, place text
SELECT id, CAST(rowid AS TEXT) FROM events
WHERE value IS NULL AND id > 0 AND id NOT IN (SELECT value FROM json_each(?2)) LIMIT ?1;

-- name: events_put
-- in:   id int, place text, value text, n int, once a row
-- why:  No other connection writes, so the rows have not moved: no second scan.
UPDATE events SET value = ?3 WHERE rowid = CAST(?2 AS INTEGER) AND id = ?1 AND value IS NULL AND ?4 > 0;
