-- Calls and their ids.
--
-- The driver (store/sqlite/driver_stmt.c) runs a statement once for each value of a column; a text with
-- json_each() gets the column as a JSON array. Parameters after the last one that a text uses are left out.
-- Only one connection writes at a time, so nothing is locked: what a transaction has read does not change.

-- name: id_find
-- in:   id text
-- out:  id text, seq bigint, fingerprint bytea
SELECT id, seq, fingerprint FROM pawl_id WHERE id = ?1;

-- name: id_add
-- in:   id text, seq bigint, fingerprint bytea
-- why:  Lookup and insert are one descent of the tree; no changed row means that the id is known.
INSERT INTO pawl_id (id, seq, fingerprint) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: id_remove
-- in:   id text
DELETE FROM pawl_id WHERE id = ?1;

-- name: call_add
-- in:   seq bigint, id text, lane int, method text, key text, form int, input bytea, priority int,
--       created_at bigint, run_at bigint, expires_at bigint, options text, caller text, client text,
--       parent text, trace text, tags text
INSERT INTO pawl_call (seq, id, lane, method, key, form, input, priority, created_at, run_at, expires_at,
                       options, caller, client, parent, trace, tags)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17);

-- name: call_read
-- in:   seq bigint
-- out:  as on the other engines; place and number of a call on offer are those of its key's head
-- why:  All places in one statement, so that a reader can report a call that is in two of them, or in none.
SELECT c.seq, c.id, c.lane, c.method, c.key, c.priority, c.created_at, c.run_at, c.expires_at, c.options,
       c.caller, c.client, c.parent, c.trace, c.tags,
       r.track, r.rank, r.run_at, r.attempts, r.lost, r.redrives, k.head_pos, k.head_no,
       o.status, o.error, o.attempts, o.lost, o.redrives, o.node, o.claimed_at, o.started_at, o.finished_at,
       o.keep_until, o.token, o.key_no,
       n.pos, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no,
       w.wished_at
FROM pawl_call c
LEFT JOIN pawl_ready r ON r.seq = c.seq
LEFT JOIN pawl_key k ON k.key = c.key AND r.seq IS NOT NULL
LEFT JOIN pawl_outcome o ON o.seq = c.seq
LEFT JOIN pawl_line n ON n.seq = c.seq AND c.key IS NOT NULL
LEFT JOIN pawl_cancel w ON w.seq = c.seq
WHERE c.seq = ?1;

-- name: call_payload
-- in:   seq bigint
-- out:  seq bigint, form int, input bytea, form int, result bytea
SELECT c.seq, c.form, c.input, o.form, o.result
FROM pawl_call c LEFT JOIN pawl_outcome o ON o.seq = c.seq WHERE c.seq = ?1;

-- name: call_move
-- in:   seq bigint, lane int, priority int, run_at bigint
-- why:  A moved call permanently shows its new values.
UPDATE pawl_call SET lane = ?2, priority = ?3, run_at = ?4 WHERE seq = ?1;

-- name: call_begin
-- in:   seq bigint, lane int
-- why:  A call that becomes a flow; it no longer expires.
UPDATE pawl_call SET lane = ?2, expires_at = NULL WHERE seq = ?1;

-- name: call_remove
-- in:   seq bigint
DELETE FROM pawl_call WHERE seq = ?1;

-- name: call_of_key
-- in:   key text
-- out:  one int
SELECT 1 FROM pawl_call INDEXED BY pawl_call_key WHERE key = ?1 LIMIT 1;

-- name: call_list
-- in:   below bigint, max int
-- out:  seq bigint
SELECT seq FROM pawl_call WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: call_list_key
SELECT seq FROM pawl_call INDEXED BY pawl_call_key WHERE key = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: call_list_parent
SELECT seq FROM pawl_call INDEXED BY pawl_call_parent WHERE parent = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: call_list_caller
SELECT seq FROM pawl_call INDEXED BY pawl_call_caller WHERE caller = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: call_list_client
SELECT seq FROM pawl_call INDEXED BY pawl_call_client WHERE client = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: call_list_lane
-- in:   below bigint, max int, lane int
-- why:  Up to max rows of each lane: the ledger merges them.
SELECT seq FROM pawl_call INDEXED BY pawl_call_lane WHERE lane = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: call_list_tag
-- in:   below bigint, max int, name text, value text
SELECT seq FROM pawl_tag WHERE name = ?3 AND value = ?4 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: call_list_bad
-- in:   below bigint, max int, status int
-- why:  "status <> 3" lets SQLite use the partial index although the status is a parameter.
SELECT seq FROM pawl_outcome INDEXED BY pawl_outcome_bad
WHERE status = ?3 AND status <> 3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: tag_add
-- in:   name text, value text, seq bigint
INSERT INTO pawl_tag (name, value, seq) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: tag_remove
-- in:   name text, value text, seq bigint
DELETE FROM pawl_tag WHERE name = ?1 AND value = ?2 AND seq = ?3;

-- name: gone_read
-- in:   seq bigint
-- out:  seq bigint, id text, status int, created_at bigint, finished_at bigint
SELECT seq, id, status, created_at, finished_at FROM pawl_gone WHERE seq = ?1;

-- name: gone_add
-- in:   seq bigint, id text, status int, created_at bigint, finished_at bigint, forget_at bigint
INSERT INTO pawl_gone (seq, id, status, created_at, finished_at, forget_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: gone_over
-- in:   now bigint, max int
-- out:  seq bigint, id text
SELECT seq, id FROM pawl_gone INDEXED BY pawl_gone_forget WHERE forget_at <= ?1 ORDER BY forget_at, seq LIMIT ?2;

-- name: gone_due
-- in:   now bigint
SELECT 1 FROM pawl_gone INDEXED BY pawl_gone_forget WHERE forget_at <= ?1 LIMIT 1;

-- name: gone_remove
-- in:   seq bigint
DELETE FROM pawl_gone WHERE seq = ?1;
