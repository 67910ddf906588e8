-- A feature of the tests (test/lib/flow.h): flow(seq, steps, undoing, waits, kept, pass) and flow_moved(seq, was,
-- state). The test makes the tables.

-- name: flow_lock
-- in:   seq bigint
-- out:  seq bigint, steps bigint, undoing bigint, waits bigint, kept bigint, pass bigint
SELECT seq, steps, undoing, waits, kept, pass FROM flow WHERE seq = ?1;

-- name: flow_add
-- in:   seq bigint
INSERT INTO flow (seq, steps, undoing, waits, kept, pass) VALUES (?1, 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING;

-- name: flow_write
-- in:   seq bigint, steps bigint, undoing bigint, waits bigint, kept bigint, pass bigint
UPDATE flow SET steps = ?2, undoing = ?3, waits = ?4, kept = ?5, pass = ?6 WHERE seq = ?1;

-- name: flow_look
-- in:   seq bigint
-- out:  seq bigint, steps bigint, undoing bigint, waits bigint, kept bigint, pass bigint
SELECT seq, steps, undoing, waits, kept, pass FROM flow WHERE seq = ?1;

-- name: flow_told
-- in:   seq bigint, was bigint, state bigint
INSERT INTO flow_moved (seq, was, state) VALUES (?1, ?2, ?3);

-- name: flow_forget
-- in:   seq bigint
DELETE FROM flow WHERE seq = ?1;
