-- Ended calls that are moved into the archive.

-- name: archive_add
-- in:   seq bigint[], now bigint
-- out:  copied bigint
SELECT pawl.archive_copy($1::bigint[], $2::bigint);

-- name: outcome_walk
-- in:   after bigint, max int
-- out:  seq bigint, finished_at bigint, keep_until bigint
-- why:  Without an index on finished_at: every finish would pay for it, and only archiving would use it.
SELECT seq, finished_at, keep_until FROM pawl.outcome WHERE seq > $1::bigint ORDER BY seq LIMIT $2::bigint;

-- name: lease_old
-- in:   before bigint, max int
-- out:  token bytea
-- why:  There are few leases: an operator's rare query needs no index.
SELECT token FROM pawl.lease WHERE claimed_at < $1::bigint ORDER BY claimed_at, token LIMIT $2::bigint
FOR UPDATE SKIP LOCKED;

-- name: archive_read
-- in:   id text
-- out:  id, status, queue, type, method, key, input, input_bytes, result, result_bytes, error, node, caller, client, parent,
--       trace, tags, options, needs (text), seq, key_no, attempts, lost, redrives, priority, created_at, run_at, started_at,
--       finished_at, archived_at (bigint)
-- why:  A forgotten id may have been used again: the newest call is shown.
SELECT id, status, queue, type, method, key, input, input_bytes, result, result_bytes, error, node, caller, client, parent,
       trace, tags, options, needs, seq, key_no, attempts::bigint, lost::bigint, redrives::bigint, priority::bigint,
       (extract(epoch FROM created_at) * 1000000)::bigint,
       (extract(epoch FROM run_at) * 1000000)::bigint,
       (extract(epoch FROM started_at) * 1000000)::bigint,
       (extract(epoch FROM finished_at) * 1000000)::bigint,
       (extract(epoch FROM archived_at) * 1000000)::bigint
FROM pawl.archive WHERE id = $1::text ORDER BY seq DESC LIMIT 1;
