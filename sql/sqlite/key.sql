-- One row a key. Read when a transaction first needs it, kept in memory, written once at its end.

-- name: key_read
-- in:   key text
-- out:  state int, head bigint, head_pos bigint, head_no bigint, next_no bigint, held bigint, waiting bigint,
--       later bigint, since bigint, ended_at bigint
SELECT state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at FROM pawl_key WHERE key = ?1;

-- name: key_add
-- in:   key text, state int, head bigint, head_pos bigint, head_no bigint, next_no bigint, held bigint,
--       waiting bigint, later bigint, since bigint, ended_at bigint
INSERT INTO pawl_key (key, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: key_write
-- in:   as key_add
UPDATE pawl_key SET state = ?2, head = ?3, head_pos = ?4, head_no = ?5, next_no = ?6, held = ?7, waiting = ?8,
  later = ?9, since = ?10, ended_at = ?11 WHERE key = ?1;

-- name: key_remove
-- in:   key text
DELETE FROM pawl_key WHERE key = ?1;

-- name: key_list
-- in:   after text
-- out:  key text, state int
SELECT key, state FROM pawl_key WHERE key > ?1 ORDER BY key;

-- name: key_list_blocked
-- in:   after text
-- out:  key text, state int
SELECT key, state FROM pawl_key INDEXED BY pawl_key_blocked WHERE state = 3 AND key > ?1 ORDER BY key;
