-- The server's clock and its sequence numbers.

-- name: clock
-- out:  now bigint
SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED);

-- name: seq_next
-- in:   kept bigint[]: 1, then 0 as often as further numbers are wanted
-- out:  the first number, and how far the next is from it
-- why:  A counter increases at once and permanently, also when its rows are rolled back: no transaction waits for
--       another's commit. A statement takes as many consecutive numbers as it names rows, before it looks at them;
--       only the first row can be stored, which saves the work of storing the others.
uncounted SAVEPOINT numbers;
uncounted INSERT IGNORE INTO pawl_number (n, kept) VALUES rows(NULL, $1);
SELECT LAST_INSERT_ID(), @@auto_increment_increment;
uncounted ROLLBACK TO SAVEPOINT numbers;

-- name: version_next
-- in:   kept bigint[], as seq_next
-- out:  as seq_next
uncounted SAVEPOINT numbers;
uncounted INSERT IGNORE INTO pawl_version (n, kept) VALUES rows(NULL, $1);
SELECT LAST_INSERT_ID(), @@auto_increment_increment;
uncounted ROLLBACK TO SAVEPOINT numbers;

-- name: seq_upto
-- out:  upto bigint
-- why:  The value that a counter must exceed before its first number is used. A program of an older release uses
--       numbers without reserving them, so the highest number in pawl_call counts too.
SELECT GREATEST(COALESCE((SELECT upto FROM pawl_reserve WHERE name = 'seq'), 0),
                COALESCE((SELECT MAX(seq) FROM pawl_call), 0));

-- name: version_upto
-- out:  upto bigint
SELECT COALESCE((SELECT upto FROM pawl_reserve WHERE name = 'version'), 0);

-- name: seq_above
-- in:   upto bigint
-- why:  Inserting a row with an explicit number raises the counter above it permanently, although the insert is
--       rolled back.
uncounted SAVEPOINT numbers;
uncounted INSERT IGNORE INTO pawl_number (n, kept) VALUES ($1, 1);
uncounted ROLLBACK TO SAVEPOINT numbers;

-- name: version_above
-- in:   upto bigint
uncounted SAVEPOINT numbers;
uncounted INSERT IGNORE INTO pawl_version (n, kept) VALUES ($1, 1);
uncounted ROLLBACK TO SAVEPOINT numbers;

-- name: reserve_raise
-- in:   name text, upto bigint
-- why:  On a separate connection: it is committed before any number up to there is used, and no group waits for
--       another one's.
uncounted INSERT INTO pawl_reserve (name, upto) VALUES ($1, $2) ON DUPLICATE KEY UPDATE upto = GREATEST(upto, $2);

-- name: look
-- in:   now bigint, token bytea, node text, boot text
-- out:  now bigint, lease int, replaced int, hint int, expires_at bigint, until bigint, joins_at bigint, run_at bigint,
--       version bigint, as change_sum
-- why:  Runs outside of any transaction, and is most of the time all that a sweep or a claim needs: does a lease with
--       this token exist, does another boot have the node's name, and when is there something to sweep or to claim.
--       Everything that a sweep or a claim processes must be asked for here, or an idle process never finds it. now
--       0: the server's clock. The version is there because an idle node asks for it even more often.
SELECT IF($1 > 0, $1, CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)),
  (SELECT COUNT(*) FROM pawl_lease WHERE token = $2),
  (SELECT COUNT(*) FROM pawl_node WHERE node = $3 AND (dead <> 0 OR boot <> $4)),
  (SELECT COUNT(*) FROM (SELECT 1 FROM pawl_hint LIMIT 1) h),
  (SELECT expires_at FROM pawl_expiry FORCE INDEX (PRIMARY) ORDER BY expires_at LIMIT 1),
  (SELECT `until` FROM pawl_lease FORCE INDEX (lease_until) WHERE `until` > 0 ORDER BY `until` LIMIT 1),
  (SELECT due FROM pawl_line FORCE INDEX (line_later) WHERE due > 0 ORDER BY due LIMIT 1),
  (SELECT MIN(p.run_at) FROM (SELECT MIN(run_at) AS run_at FROM pawl_ready FORCE INDEX (ready_due)
                              GROUP BY track, `rank`) p),
  (SELECT CAST(MOD(COALESCE(SUM(n), 0), 9223372036854775807) AS SIGNED) FROM pawl_change WHERE conn <> CONNECTION_ID());

-- name: change_add
-- in:   now bigint
-- why:  The connection's own row: no other connection writes it.
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

-- name: standby_wait
-- in:   id bigint; 0: any session of this account
-- out:  works bigint; then name text, waits bigint
-- why:  To the waiting client, a commit that waits for a semi-synchronous replica, a slow commit and a dead
--       connection look alike. This is asked on another connection. With AFTER_SYNC only the first of a group of
--       commits is shown as waiting, perhaps one of another account: so the server's own count says whether any
--       waits.
SELECT COUNT(*) FROM information_schema.processlist
WHERE ($1 = 0 OR id = $1) AND id <> CONNECTION_ID() AND command <> 'Sleep';
SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%_wait_sessions';
