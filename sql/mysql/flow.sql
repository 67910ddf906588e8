-- A feature of the tests (test/lib/flow.h): flow(seq, steps, undoing, waits, kept, pass) and flow_moved(seq, was,
-- state). The test makes the tables.

-- name: flow_lock
-- in:   seq bigint[]
-- out:  seq bigint, steps bigint, undoing bigint, waits bigint, kept bigint, pass bigint
SELECT f.seq, f.steps, f.undoing, f.waits, f.kept, f.pass
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN flow f FORCE INDEX (PRIMARY) ON f.seq = v.seq FOR UPDATE;

-- name: flow_add
-- in:   seq bigint[]
INSERT IGNORE INTO flow (seq, steps, undoing, waits, kept, pass) VALUES rows($1, 0, 0, 0, 0, 0);

-- name: flow_write
-- in:   seq bigint[], steps bigint[], undoing bigint[], waits bigint[], kept bigint[], pass bigint[]
each{UPDATE flow SET steps = $2, undoing = $3, waits = $4, kept = $5, pass = $6 WHERE seq = $1};

-- name: flow_look
-- in:   seq bigint[]
-- out:  seq bigint, steps bigint, undoing bigint, waits bigint, kept bigint, pass bigint
SELECT f.seq, f.steps, f.undoing, f.waits, f.kept, f.pass
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN flow f FORCE INDEX (PRIMARY) ON f.seq = v.seq;

-- name: flow_told
-- in:   seq bigint[], was bigint[], state bigint[]
INSERT INTO flow_moved (seq, was, state) VALUES rows($1, $2, $3);

-- name: flow_forget
-- in:   seq bigint[]
each{DELETE FROM flow WHERE seq = $1};
