-- Leases, one row a batch.

-- name: lease_add
-- in:   token bytea, node text, boot text, worker text, claimed_at bigint, until bigint, rev bigint, low bigint,
--       high bigint, held bytea, width int
INSERT INTO pawl_lease (token, node, boot, worker, claimed_at, until, rev, low, high, held, width)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: lease_rev
-- in:   token bytea
-- out:  rev bigint, until bigint
-- why:  The fence: no row, no lease. An owner that remembers the list under this rev needs to read no more.
SELECT rev, until FROM pawl_lease WHERE token = ?1;

-- name: lease_read
-- in:   token bytea
-- out:  owner text, claimed_at bigint, until bigint, rev bigint, held bytea, width int, by_worker int
SELECT coalesce(worker, node), claimed_at, until, rev, held, width, worker IS NOT NULL FROM pawl_lease WHERE token = ?1;

-- name: lease_around
-- in:   seq bigint
-- out:  owner text, claimed_at bigint, held bytea, token bytea, width int
SELECT coalesce(worker, node), claimed_at, held, token, width FROM pawl_lease WHERE low <= ?1 AND high >= ?1;

-- name: lease_list
-- in:   below bigint
-- out:  held bytea, width int
SELECT held, width FROM pawl_lease WHERE low < ?1;

-- name: lease_rewrite
-- in:   token bytea, low bigint, high bigint, held bytea
UPDATE pawl_lease SET rev = rev + 1, low = ?2, high = ?3, held = ?4 WHERE token = ?1;

-- name: lease_extend
-- in:   token bytea, until bigint
UPDATE pawl_lease SET until = ?2 WHERE token = ?1;

-- name: lease_remove
-- in:   token bytea
DELETE FROM pawl_lease WHERE token = ?1;

-- name: lease_over
-- in:   now bigint, max int
-- out:  token bytea
SELECT token FROM pawl_lease INDEXED BY pawl_lease_until
WHERE until IS NOT NULL AND until <= ?1 ORDER BY until, token LIMIT ?2;

-- name: lease_old
-- in:   before bigint, max int
-- out:  token bytea
-- why:  Leases are few, one a busy worker: no index for what a person asks now and then.
SELECT token FROM pawl_lease WHERE claimed_at < ?1 ORDER BY claimed_at, token LIMIT ?2;

-- name: lease_next
-- in:   now bigint
-- out:  until bigint
SELECT until FROM pawl_lease INDEXED BY pawl_lease_until
WHERE until IS NOT NULL AND until > ?1 ORDER BY until LIMIT 1;

-- name: lease_of_node
-- in:   node text, boot text, own int
-- out:  token bytea
-- why:  own 0: every other boot of the name, which is what a restarted process takes back. A lease with an end
--       belongs to a worker outside the process.
SELECT token FROM pawl_lease INDEXED BY pawl_lease_owner WHERE node = ?1 AND (boot = ?2) = ?3 AND until IS NULL;

-- name: lease_held_ended
-- in:   seq bigint
-- out:  ended int
-- why:  A call that retention has taken ended before; a list that still names it must not bring it back.
SELECT EXISTS (SELECT 1 FROM pawl_outcome WHERE seq = ?1) OR NOT EXISTS (SELECT 1 FROM pawl_call WHERE seq = ?1);
