-- Tombstones.

-- name: gone_add
-- in:   seq bigint, id text, status int, created_at bigint, finished_at bigint, forget_at bigint
INSERT INTO pawl_gone (seq, id, status, created_at, finished_at, forget_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: gone_read
-- in:   seq bigint
-- out:  id text, status int, created_at bigint, finished_at bigint
SELECT id, status, created_at, finished_at FROM pawl_gone WHERE seq = ?1;

-- name: gone_over
-- in:   now bigint, max int
-- out:  seq bigint, id text
SELECT seq, id FROM pawl_gone INDEXED BY pawl_gone_forget WHERE forget_at <= ?1 ORDER BY forget_at, seq LIMIT ?2;

-- name: gone_remove
-- in:   seq bigint
DELETE FROM pawl_gone WHERE seq = ?1;
