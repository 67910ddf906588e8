-- Ids: the only place that says whether a call is known.

-- name: id_find
-- in:   id text
-- out:  seq bigint, fingerprint bytea
SELECT seq, fingerprint FROM pawl_id WHERE id = ?1;

-- name: id_add
-- in:   id text, seq bigint, fingerprint bytea
-- why:  The look-up and the insert are one walk down the tree; no row changed means the id is known.
INSERT INTO pawl_id (id, seq, fingerprint) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: id_remove
-- in:   id text
DELETE FROM pawl_id WHERE id = ?1;
