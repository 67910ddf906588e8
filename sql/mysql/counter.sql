-- A feature of the tests (test/lib/counter.h): counter(name, value), counter_op(id, value) and counter_moved(seq, id,
-- was, state, watch). The test makes the tables.

-- name: counter_lock
-- in:   name text[]
-- out:  name text, value bigint
SELECT c.name, c.value FROM JSON_TABLE(json($1), '$[*]' COLUMNS (name VARCHAR(510) PATH '$')) v
STRAIGHT_JOIN counter c FORCE INDEX (PRIMARY) ON c.name = UNHEX(v.name) FOR UPDATE;

-- name: counter_add
-- in:   name text[], value bigint[]
INSERT IGNORE INTO counter (name, value) VALUES rows($1, $2);

-- name: counter_write
-- in:   name text[], value bigint[]
each{UPDATE counter SET value = $2 WHERE name = $1};

-- name: counter_op_find
-- in:   id text[]
-- out:  id text, value bigint
SELECT o.id, o.value FROM JSON_TABLE(json($1), '$[*]' COLUMNS (id VARCHAR(510) PATH '$')) v
STRAIGHT_JOIN counter_op o FORCE INDEX (PRIMARY) ON o.id = UNHEX(v.id);

-- name: counter_op_add
-- in:   id text[], value bigint[]
INSERT IGNORE INTO counter_op (id, value) VALUES rows($1, $2);

-- name: counter_moved_add
-- in:   seq bigint[], id text[], was bigint[], state bigint[], watch bigint[]
INSERT INTO counter_moved (seq, id, was, state, watch) VALUES rows($1, $2, $3, $4, $5);

-- name: counter_forget
-- in:   seq bigint[]
each{DELETE FROM counter_moved WHERE seq = $1};

-- name: counter_read
-- out:  counters bigint, total bigint, ops bigint
SELECT COUNT(*), CAST(COALESCE(SUM(value), 0) AS SIGNED), (SELECT COUNT(*) FROM counter_op) FROM counter;
