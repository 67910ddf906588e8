-- Tags as an index; the call's own row has them too, as it shows them.

-- name: tag_add
-- in:   name text, value text, seq bigint
INSERT INTO pawl_tag (name, value, seq) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: tag_remove
-- in:   name text, value text, seq bigint
DELETE FROM pawl_tag WHERE name = ?1 AND value = ?2 AND seq = ?3;

-- name: tag_list
-- in:   name text, value text, below bigint
-- out:  seq bigint
SELECT seq FROM pawl_tag WHERE name = ?1 AND value = ?2 AND seq < ?3 ORDER BY seq DESC;
