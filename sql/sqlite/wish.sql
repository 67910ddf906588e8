-- Somebody wants a processing call cancelled.

-- name: wish_add
-- in:   seq bigint, wished_at bigint
INSERT INTO pawl_cancel (seq, wished_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING;

-- name: wish_has
-- in:   seq bigint
-- out:  one int
SELECT 1 FROM pawl_cancel WHERE seq = ?1;

-- name: wish_remove
-- in:   seq bigint
DELETE FROM pawl_cancel WHERE seq = ?1;

-- name: wish_any
-- out:  one int
-- why:  Nearly always none: asked once a group instead of once a finish.
SELECT 1 FROM pawl_cancel LIMIT 1;

-- name: wish_list
-- in:   max int
-- out:  seq bigint
SELECT seq FROM pawl_cancel ORDER BY seq LIMIT ?1;
