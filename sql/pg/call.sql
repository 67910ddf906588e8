-- Calls and their ids.

-- name: id_find
-- in:   id text[], fresh bigint
-- out:  id text, seq bigint, fingerprint bytea
-- why:  `fresh` of the ids may be new: for unknown ids the statement also returns sequence numbers, as rows without
--       an id.
WITH known AS (SELECT id, seq, fingerprint FROM pawl.id WHERE id = ANY ($1::text[]))
SELECT id, seq, fingerprint FROM known
UNION ALL
SELECT NULL, nextval('pawl.seq'), NULL FROM generate_series(1, $2::bigint - (SELECT count(*) FROM known));

-- name: id_add
-- in:   id text[], seq bigint[], fingerprint bytea[]
-- why:  Sorted, so that two groups with the same ids do not deadlock. An existing id means that another transaction
--       was faster, and rolls the group back.
INSERT INTO pawl.id (id, seq, fingerprint) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[]);

-- name: id_remove
-- in:   id text[]
DELETE FROM pawl.id WHERE id = ANY ($1::text[]);

-- name: call_add
INSERT INTO pawl.call (seq, id, lane, method, key, form, input, priority, created_at, run_at, expires_at,
                       options, caller, client, parent, trace, tags)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bytea[],
                     $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::text[],
                     $14::text[], $15::text[], $16::text[], $17::text[]);

-- name: call_read
-- in:   seq bigint[]
-- why:  All places in one statement, so that a reader can report a call that is in two of them, or in none. OFFSET 0:
--       each table is read by its index, even if the statement was planned when the table looked empty. With an old
--       snapshot open, an empty table still has many dead rows.
SELECT c.seq, c.id, c.lane, c.method, c.key, c.priority, c.created_at, c.run_at, c.expires_at, c.options,
       c.caller, c.client, c.parent, c.trace, c.tags,
       r.track, r.rank, r.run_at, r.attempts, r.lost, r.redrives, r.pos, r.key_no,
       o.status, o.error, o.attempts, o.lost, o.redrives, o.node, o.claimed_at, o.started_at, o.finished_at,
       o.keep_until, o.token, o.key_no,
       n.pos, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no,
       w.wished_at
FROM unnest($1::bigint[]) s (seq)
JOIN pawl.call c ON c.seq = s.seq
LEFT JOIN LATERAL (SELECT * FROM pawl.ready WHERE seq = s.seq OFFSET 0) r ON true
LEFT JOIN LATERAL (SELECT * FROM pawl.outcome WHERE seq = s.seq OFFSET 0) o ON true
LEFT JOIN LATERAL (SELECT * FROM pawl.line WHERE seq = s.seq OFFSET 0) n ON true
LEFT JOIN LATERAL (SELECT * FROM pawl.cancel WHERE seq = s.seq OFFSET 0) w ON true;

-- name: call_payload
-- in:   seq bigint[]
-- out:  seq bigint, form int, input bytea, form int, result bytea
SELECT c.seq, c.form, c.input, o.form, o.result
FROM unnest($1::bigint[]) s (seq)
JOIN pawl.call c ON c.seq = s.seq
LEFT JOIN pawl.outcome o ON o.seq = s.seq;

-- name: call_move
-- in:   seq bigint[], lane int[], priority int[], run_at bigint[]
-- why:  A moved call permanently shows its new values.
UPDATE pawl.call c SET lane = v.lane, priority = v.priority, run_at = v.run_at
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) v (seq, lane, priority, run_at)
WHERE c.seq = v.seq;

-- name: call_begin
-- in:   seq bigint[], lane int[]
-- why:  A call that becomes a flow; it no longer expires.
UPDATE pawl.call c SET lane = v.lane, expires_at = NULL FROM unnest($1::bigint[], $2::bigint[]) v (seq, lane)
WHERE c.seq = v.seq;

-- name: call_remove
-- in:   seq bigint[]
DELETE FROM pawl.call WHERE seq = ANY ($1::bigint[]);

-- name: call_of_key
-- in:   key text
-- out:  one int
SELECT 1 FROM pawl.call WHERE key = $1::text LIMIT 1;

-- name: call_list
-- in:   below bigint, max int
-- out:  seq bigint
SELECT seq FROM pawl.call WHERE seq < $1::bigint ORDER BY seq DESC LIMIT $2::bigint;

-- name: call_list_key
SELECT seq FROM pawl.call WHERE key = $3::text AND seq < $1::bigint ORDER BY seq DESC LIMIT $2::bigint;

-- name: call_list_parent
SELECT seq FROM pawl.call WHERE parent = $3::text AND seq < $1::bigint ORDER BY seq DESC LIMIT $2::bigint;

-- name: call_list_caller
SELECT seq FROM pawl.call WHERE caller = $3::text AND seq < $1::bigint ORDER BY seq DESC LIMIT $2::bigint;

-- name: call_list_client
SELECT seq FROM pawl.call WHERE client = $3::text AND seq < $1::bigint ORDER BY seq DESC LIMIT $2::bigint;

-- name: call_list_lane
-- in:   below bigint, max int, lane int[]
SELECT c.seq FROM unnest($3::bigint[]) l (lane)
CROSS JOIN LATERAL (SELECT seq FROM pawl.call WHERE lane = l.lane AND seq < $1::bigint
                    ORDER BY seq DESC LIMIT $2::bigint) c
ORDER BY c.seq DESC LIMIT $2::bigint;

-- name: call_list_tag
-- in:   below bigint, max int, name text, value text
SELECT seq FROM pawl.tag WHERE name = $3::text AND value = $4::text AND seq < $1::bigint
ORDER BY seq DESC LIMIT $2::bigint;

-- name: call_list_bad
-- in:   below bigint, max int, status int
SELECT seq FROM pawl.outcome WHERE status = $3::bigint AND status <> 3 AND seq < $1::bigint
ORDER BY seq DESC LIMIT $2::bigint;

-- name: tag_add
-- in:   name text[], value text[], seq bigint[]
INSERT INTO pawl.tag (name, value, seq) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]);

-- name: tag_remove
-- in:   name text[], value text[], seq bigint[]
DELETE FROM pawl.tag t USING unnest($1::text[], $2::text[], $3::bigint[]) v (name, value, seq)
WHERE t.name = v.name AND t.value = v.value AND t.seq = v.seq;

-- name: gone_read
-- in:   seq bigint[]
-- out:  seq bigint, id text, status int, created_at bigint, finished_at bigint
SELECT seq, id, status, created_at, finished_at FROM pawl.gone WHERE seq = ANY ($1::bigint[]);

-- name: gone_add
INSERT INTO pawl.gone (seq, id, status, created_at, finished_at, forget_at)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]);

-- name: gone_over
-- in:   now bigint, max int
-- out:  seq bigint, id text
SELECT seq, id FROM pawl.gone WHERE forget_at <= $1::bigint ORDER BY forget_at, seq LIMIT $2::bigint
FOR UPDATE SKIP LOCKED;

-- name: gone_due
-- in:   now bigint
SELECT 1 FROM pawl.gone WHERE forget_at <= $1::bigint LIMIT 1;

-- name: gone_remove
-- in:   seq bigint[]
DELETE FROM pawl.gone WHERE seq = ANY ($1::bigint[]);
