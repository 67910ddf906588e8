-- A feature of the tests (test/lib/flow.h): flow(seq, steps, undoing, waits, kept, pass) and flow_moved(seq, was,
-- state). The test makes the tables.

-- name: flow_lock
-- in:   seq bigint[]
-- out:  seq bigint, steps bigint, undoing bigint, waits bigint, kept bigint, pass bigint
SELECT seq, steps, undoing, waits, kept, pass FROM flow WHERE seq = ANY ($1::bigint[]) ORDER BY seq FOR UPDATE;

-- name: flow_add
-- in:   seq bigint[]
INSERT INTO flow (seq, steps, undoing, waits, kept, pass) SELECT v.seq, 0, 0, 0, 0, 0 FROM unnest($1::bigint[]) v (seq)
ON CONFLICT DO NOTHING;

-- name: flow_write
-- in:   seq bigint[], steps bigint[], undoing bigint[], waits bigint[], kept bigint[], pass bigint[]
UPDATE flow f SET steps = v.steps, undoing = v.undoing, waits = v.waits, kept = v.kept, pass = v.pass
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
            $6::bigint[]) v (seq, steps, undoing, waits, kept, pass)
WHERE f.seq = v.seq;

-- name: flow_look
-- in:   seq bigint[]
-- out:  seq bigint, steps bigint, undoing bigint, waits bigint, kept bigint, pass bigint
SELECT seq, steps, undoing, waits, kept, pass FROM flow WHERE seq = ANY ($1::bigint[]) ORDER BY seq;

-- name: flow_told
-- in:   seq bigint[], was bigint[], state bigint[]
INSERT INTO flow_moved (seq, was, state) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]);

-- name: flow_forget
-- in:   seq bigint[]
DELETE FROM flow WHERE seq = ANY ($1::bigint[]);
