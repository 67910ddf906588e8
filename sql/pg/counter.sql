-- A feature of the tests (test/lib/counter.h): counter(name, value), counter_op(id, value) and counter_moved(seq, id,
-- was, state, watch). The test makes the tables.

-- name: counter_lock
-- in:   name text[]
-- out:  name text, value bigint
SELECT name, value FROM counter WHERE name = ANY ($1::text[]) ORDER BY name FOR UPDATE;

-- name: counter_add
-- in:   name text[], value bigint[]
INSERT INTO counter (name, value) SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT DO NOTHING;

-- name: counter_write
-- in:   name text[], value bigint[]
UPDATE counter c SET value = v.value FROM unnest($1::text[], $2::bigint[]) v (name, value) WHERE c.name = v.name;

-- name: counter_op_find
-- in:   id text[]
-- out:  id text, value bigint
SELECT id, value FROM counter_op WHERE id = ANY ($1::text[]);

-- name: counter_op_add
-- in:   id text[], value bigint[]
INSERT INTO counter_op (id, value) SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT DO NOTHING;

-- name: counter_moved_add
-- in:   seq bigint[], id text[], was bigint[], state bigint[], watch bigint[]
INSERT INTO counter_moved (seq, id, was, state, watch)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[]);

-- name: counter_forget
-- in:   seq bigint[]
DELETE FROM counter_moved WHERE seq = ANY ($1::bigint[]);

-- name: counter_read
-- out:  counters bigint, total bigint, ops bigint
SELECT count(*), coalesce(sum(value), 0)::bigint, (SELECT count(*) FROM counter_op) FROM counter;
