-- Notifications between processes, and the query that an idle process runs.

-- name: listen_enter
-- in:   channel text
-- why:  A lock that shows that one of our sessions listens; it ends with the session.
SELECT pg_advisory_lock_shared(1885435758, hashtext($1::text));

-- name: listen_others
-- in:   channel text
-- out:  n bigint
-- why:  A NOTIFY without listeners still takes a lock that all commits share.
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1885435758
  AND objid::bigint = hashtext($1::text)::bigint & 4294967295 AND pid <> pg_backend_pid()
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- name: listen_tell
-- in:   channel text, kinds text
SELECT pg_notify($1::text, $2::text);

-- name: look
-- in:   now bigint, token bytea, node text, boot text
-- out:  now bigint, lease int, replaced int, hint int, expires_at bigint, until bigint, joins_at bigint, run_at bigint,
--       version bigint: 0, asked elsewhere
-- why:  Runs outside of any transaction, and is most of the time all that a sweep or a claim needs: does a lease with
--       this token exist, does another boot have the node's name, and when is there something to sweep or to claim;
--       calls in the inbox count like key notes. Everything that a sweep or a claim processes must be asked for here,
--       or an idle process never finds it. now 0: the server's clock.
WITH RECURSIVE p (track, rank, run_at) AS (
  (SELECT track, rank, run_at FROM pawl.ready ORDER BY track, rank, run_at, seq LIMIT 1)
  UNION ALL
  SELECT n.track, n.rank, n.run_at FROM p CROSS JOIN LATERAL (
    SELECT track, rank, run_at FROM pawl.ready r WHERE (r.track, r.rank) > (p.track, p.rank)
    ORDER BY track, rank, run_at, seq LIMIT 1) n)
SELECT CASE WHEN $1::bigint > 0 THEN $1::bigint ELSE (extract(epoch FROM clock_timestamp()) * 1000000)::bigint END,
  (SELECT count(*) FROM pawl.lease WHERE token = $2::bytea),
  (SELECT count(*) FROM pawl.node WHERE node = $3::text AND (dead <> 0 OR boot <> $4::text)),
  (SELECT count(*) FROM (SELECT 1 FROM pawl.hint LIMIT 1) h) +
  (SELECT count(*) FROM (SELECT 1 FROM pawl.inbox WHERE refused_at IS NULL LIMIT 1) b),
  (SELECT expires_at FROM pawl.expiry ORDER BY expires_at LIMIT 1),
  (SELECT until FROM pawl.lease WHERE until IS NOT NULL ORDER BY until LIMIT 1),
  (SELECT run_at FROM pawl.line WHERE pos < 0 ORDER BY run_at LIMIT 1),
  (SELECT min(run_at) FROM p),
  0;

-- name: script_lock
-- why:  When two processes run CREATE TABLE IF NOT EXISTS at the same time, the second one fails.
SELECT pg_advisory_xact_lock(1885435758, 1);
