-- The server's clock, and its numbers.

-- name: clock
-- out:  now bigint
SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED);

-- name: seq_next
-- in:   kept bigint[]: 1, then 0 as often as further numbers are wanted
-- out:  the first number
-- why:  A counter goes up at once and for good, whatever becomes of its rows: nobody waits for anybody's commit. A
--       statement takes as many numbers as it names rows, in a row, before it looks at them; only the first is fit
--       to be stored, which saves the work of storing the others.
uncounted SAVEPOINT numbers;
uncounted INSERT IGNORE INTO pawl_number (n, kept) VALUES rows(NULL, $1);
SELECT LAST_INSERT_ID();
uncounted ROLLBACK TO SAVEPOINT numbers;

-- name: version_next
-- in:   kept bigint[], as seq_next
-- out:  the first number
uncounted SAVEPOINT numbers;
uncounted INSERT IGNORE INTO pawl_version (n, kept) VALUES rows(NULL, $1);
SELECT LAST_INSERT_ID();
uncounted ROLLBACK TO SAVEPOINT numbers;

-- name: look
-- in:   now bigint, token bytea, node text, boot text
-- out:  now bigint, lease int, replaced int, hint int, expires_at bigint, until bigint, joins_at bigint, run_at bigint
-- why:  Outside of any transaction, and most of the time all that a sweep or a claim needs: is a lease with
--       this token there, has another boot the node's name, and from when on is there something to sweep or to
--       claim. Whatever a sweep or a claim takes up must be asked for here, or an idle process never finds it.
--       now 0: the server's clock.
SELECT IF($1 > 0, $1, CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)),
  (SELECT COUNT(*) FROM pawl_lease WHERE token = $2),
  (SELECT COUNT(*) FROM pawl_node WHERE node = $3 AND (dead <> 0 OR boot <> $4)),
  (SELECT COUNT(*) FROM (SELECT 1 FROM pawl_hint LIMIT 1) h),
  (SELECT expires_at FROM pawl_expiry FORCE INDEX (PRIMARY) ORDER BY expires_at LIMIT 1),
  (SELECT `until` FROM pawl_lease FORCE INDEX (lease_until) WHERE `until` > 0 ORDER BY `until` LIMIT 1),
  (SELECT due FROM pawl_line FORCE INDEX (line_later) WHERE due > 0 ORDER BY due LIMIT 1),
  (SELECT MIN(p.run_at) FROM (SELECT MIN(run_at) AS run_at FROM pawl_ready FORCE INDEX (ready_due)
                              GROUP BY track, `rank`) p);

-- name: change_add
-- in:   now bigint
-- why:  The connection's own row: nobody else writes it.
uncounted INSERT INTO pawl_change (conn, n) VALUES (CONNECTION_ID(), $1)
ON DUPLICATE KEY UPDATE n = GREATEST(n + 1, $1);

-- name: change_sum
-- out:  sum bigint
SELECT CAST(MOD(COALESCE(SUM(n), 0), 9223372036854775807) AS SIGNED) FROM pawl_change WHERE conn <> CONNECTION_ID();

-- name: change_old
-- in:   before bigint
-- out:  conn bigint
SELECT conn FROM pawl_change WHERE n < $1;

-- name: change_remove
-- in:   conn bigint[]
each{DELETE FROM pawl_change WHERE conn = $1};
