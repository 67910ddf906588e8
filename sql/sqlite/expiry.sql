-- Pending calls that may expire.

-- name: expiry_add
-- in:   expires_at bigint, seq bigint
INSERT INTO pawl_expiry (expires_at, seq) VALUES (?1, ?2);

-- name: expiry_remove
-- in:   expires_at bigint, seq bigint
DELETE FROM pawl_expiry WHERE expires_at = ?1 AND seq = ?2;

-- name: expiry_due
-- in:   now bigint, max int
-- out:  seq bigint
SELECT seq FROM pawl_expiry WHERE expires_at <= ?1 ORDER BY expires_at, seq LIMIT ?2;

-- name: expiry_next
-- in:   now bigint
-- out:  expires_at bigint
SELECT expires_at FROM pawl_expiry WHERE expires_at > ?1 ORDER BY expires_at LIMIT 1;
