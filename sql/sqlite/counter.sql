-- A feature of the tests (test/lib/counter.h): counter(name, value), counter_op(id, value) and counter_moved(seq, id,
-- was, state, watch). The test makes the tables.

-- name: counter_lock
-- in:   name text
-- out:  name text, value bigint
SELECT name, value FROM counter WHERE name = ?1;

-- name: counter_add
-- in:   name text, value bigint
INSERT INTO counter (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING;

-- name: counter_write
-- in:   name text, value bigint
UPDATE counter SET value = ?2 WHERE name = ?1;

-- name: counter_op_find
-- in:   id text
-- out:  id text, value bigint
SELECT id, value FROM counter_op WHERE id = ?1;

-- name: counter_op_add
-- in:   id text, value bigint
INSERT INTO counter_op (id, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING;

-- name: counter_moved_add
-- in:   seq bigint, id text, was bigint, state bigint, watch bigint
INSERT INTO counter_moved (seq, id, was, state, watch) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: counter_forget
-- in:   seq bigint
DELETE FROM counter_moved WHERE seq = ?1;

-- name: counter_read
-- out:  counters bigint, total bigint, ops bigint
SELECT count(*), coalesce(sum(value), 0), (SELECT count(*) FROM counter_op) FROM counter;
