-- Objects' states.

-- name: object_read
-- in:   key text, type text
-- out:  form int, state bytea, version bigint, updated_at bigint
SELECT form, state, version, updated_at FROM pawl_object WHERE key = ?1 AND type = ?2;

-- name: object_write
-- in:   key text, type text, form int, state bytea, version bigint, updated_at bigint
INSERT INTO pawl_object (key, type, form, state, version, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (key, type) DO UPDATE SET form = ?3, state = ?4, version = ?5, updated_at = ?6;

-- name: object_remove
-- in:   key text, type text
DELETE FROM pawl_object WHERE key = ?1 AND type = ?2;

-- name: object_any
-- in:   key text
-- out:  one int
SELECT 1 FROM pawl_object WHERE key = ?1 LIMIT 1;
