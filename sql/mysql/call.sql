-- Calls and their ids.
--
-- The driver (store/mysql/text.c) replaces in these texts: $1 by a value; rows(...) by a list of rows;
-- json(...) by the rows as JSON, sorted by the first column, bytes in hex; each{...} by the statement once
-- for each row. Rows of a statement that begins with `uncounted` do not count as changed by this name, those of one
-- that begins with `twice` are counted twice each by the server. Rows are found one by one, with JSON_TABLE and a
-- join in the order written: a list (IN) may become a scan, which would wait for locks of other rows.

-- name: id_find
-- in:   id text[], fresh bigint
-- out:  id text, seq bigint, fingerprint bytea
-- why:  Numbers for new ids are taken later, when it is known how many there are: seq_next.
SELECT i.id, i.seq, i.fingerprint
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (id VARCHAR(510) PATH '$')) v
STRAIGHT_JOIN pawl_id i FORCE INDEX (PRIMARY) ON i.id = UNHEX(v.id);

-- name: id_add
-- in:   id text[], seq bigint[], fingerprint bytea[]
-- why:  Sorted, so that two groups with the same ids do not deadlock. An existing id means that another transaction
--       was faster.
INSERT INTO pawl_id (id, seq, fingerprint) VALUES rows($1, $2, $3);

-- name: id_remove
-- in:   id text[]
DELETE i FROM JSON_TABLE(json($1), '$[*]' COLUMNS (id VARCHAR(510) PATH '$')) v
STRAIGHT_JOIN pawl_id i FORCE INDEX (PRIMARY) ON i.id = UNHEX(v.id);

-- name: call_add
INSERT INTO pawl_call into(seq = $1, id = $2, lane = $3, method = $4, `key` = $5, form = $6, input = $7,
    priority = $8, created_at = $9, run_at = $10, expires_at = $11, options = $12, caller = $13, client = $14,
    parent = $15, trace = $16, tags = $17);
uncounted INSERT INTO pawl_find (kind, value, seq) VALUES rows($5: 1, $5, $1);
uncounted INSERT INTO pawl_find (kind, value, seq) VALUES rows($15: 2, $15, $1);
uncounted INSERT INTO pawl_find (kind, value, seq) VALUES rows($13: 3, $13, $1);
uncounted INSERT INTO pawl_find (kind, value, seq) VALUES rows($14: 4, $14, $1);

-- name: call_read
-- in:   seq bigint[]
-- why:  All places in one statement, so that a reader can report a call that is in two of them, or in none.
SELECT c.seq, c.id, c.lane, c.method, c.`key`, c.priority, c.created_at, c.run_at, c.expires_at, c.options,
       c.caller, c.client, c.parent, c.trace, c.tags,
       r.track, r.`rank`, r.run_at, r.attempts, r.lost, r.redrives, r.pos, r.key_no,
       o.status, o.error, o.attempts, o.lost, o.redrives, o.node, o.claimed_at, o.started_at, o.finished_at,
       o.keep_until, o.token, o.key_no,
       n.pos, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no,
       w.wished_at
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq
LEFT JOIN pawl_ready r FORCE INDEX (PRIMARY) ON r.seq = v.seq
LEFT JOIN pawl_outcome o FORCE INDEX (PRIMARY) ON o.seq = v.seq
LEFT JOIN pawl_line n FORCE INDEX (line_seq) ON n.seq = v.seq
LEFT JOIN pawl_cancel w FORCE INDEX (PRIMARY) ON w.seq = v.seq;

-- name: call_payload
-- in:   seq bigint[]
-- out:  seq bigint, form int, input bytea, form int, result bytea
SELECT c.seq, c.form, c.input, o.form, o.result
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq
LEFT JOIN pawl_outcome o FORCE INDEX (PRIMARY) ON o.seq = v.seq;

-- name: call_move
-- in:   seq bigint[], lane int[], priority int[], run_at bigint[]
-- why:  A moved call permanently shows its new values.
each{UPDATE pawl_call SET lane = $2, priority = $3, run_at = $4 WHERE seq = $1};

-- name: call_begin
-- in:   seq bigint[], lane int[]
-- why:  A call that becomes a flow; it no longer expires.
each{UPDATE pawl_call SET lane = $2, expires_at = NULL WHERE seq = $1};

-- name: call_remove
-- in:   seq bigint[]
uncounted DELETE f FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq STRAIGHT_JOIN pawl_find f FORCE INDEX (PRIMARY) ON f.kind = 1 AND f.value = c.`key` AND f.seq = c.seq;
uncounted DELETE f FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq STRAIGHT_JOIN pawl_find f FORCE INDEX (PRIMARY) ON f.kind = 2 AND f.value = c.parent AND f.seq = c.seq;
uncounted DELETE f FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq STRAIGHT_JOIN pawl_find f FORCE INDEX (PRIMARY) ON f.kind = 3 AND f.value = c.caller AND f.seq = c.seq;
uncounted DELETE f FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq STRAIGHT_JOIN pawl_find f FORCE INDEX (PRIMARY) ON f.kind = 4 AND f.value = c.client AND f.seq = c.seq;
DELETE c FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq;

-- name: call_of_key
-- in:   key text
-- out:  one int
SELECT 1 FROM pawl_find WHERE kind = 1 AND value = $1 LIMIT 1;

-- name: call_list
-- in:   below bigint, max int
-- out:  seq bigint
SELECT seq FROM pawl_call FORCE INDEX (PRIMARY) WHERE seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: call_list_key
SELECT seq FROM pawl_find WHERE kind = 1 AND value = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: call_list_parent
SELECT seq FROM pawl_find WHERE kind = 2 AND value = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: call_list_caller
SELECT seq FROM pawl_find WHERE kind = 3 AND value = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: call_list_client
SELECT seq FROM pawl_find WHERE kind = 4 AND value = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: call_list_lane
-- in:   below bigint, max int, lane int[]
SELECT seq FROM (each UNION ALL {(SELECT seq FROM pawl_call FORCE INDEX (call_lane)
                                  WHERE lane = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2)}) t
ORDER BY seq DESC LIMIT $2;

-- name: call_list_tag
-- in:   below bigint, max int, name text, value text
SELECT seq FROM pawl_tag WHERE name = $3 AND value = $4 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: call_list_bad
-- in:   below bigint, max int, status int
SELECT seq FROM pawl_outcome FORCE INDEX (outcome_bad) WHERE bad = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;

-- name: tag_add
-- in:   name text[], value text[], seq bigint[]
INSERT INTO pawl_tag (name, value, seq) VALUES rows($1, $2, $3);

-- name: tag_remove
-- in:   name text[], value text[], seq bigint[]
each{DELETE FROM pawl_tag WHERE name = $1 AND value = $2 AND seq = $3};

-- name: gone_read
-- in:   seq bigint[]
-- out:  seq bigint, id text, status int, created_at bigint, finished_at bigint
SELECT g.seq, g.id, g.status, g.created_at, g.finished_at
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_gone g FORCE INDEX (PRIMARY) ON g.seq = v.seq;

-- name: gone_add
INSERT INTO pawl_gone (seq, id, status, created_at, finished_at, forget_at) VALUES rows($1, $2, $3, $4, $5, $6);

-- name: gone_over
-- in:   now bigint, max int
-- out:  seq bigint, id text
SELECT seq, id FROM pawl_gone FORCE INDEX (gone_forget) WHERE forget_at <= $1 ORDER BY forget_at, seq LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: gone_due
-- in:   now bigint
SELECT 1 FROM pawl_gone FORCE INDEX (gone_forget) WHERE forget_at <= $1 LIMIT 1;

-- name: gone_remove
-- in:   seq bigint[]
DELETE g FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_gone g FORCE INDEX (PRIMARY) ON g.seq = v.seq;
