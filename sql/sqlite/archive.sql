-- Calls that were moved into the archive, one wide row each.

-- name: archive_add
-- in:   seq bigint, now bigint
-- why:  Form 1 is JSON and stored as text, so that people can read it; everything else stays bytes.
INSERT INTO pawl_archive (seq, id, status, queue, type, method, key, key_no, input, result, error, attempts,
                          lost, redrives, priority, node, created_at, run_at, started_at, finished_at,
                          archived_at, caller, client, parent, trace, tags, options, needs)
SELECT c.seq, c.id, CASE o.status WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' WHEN 5 THEN 'dead_letter'
                                  WHEN 6 THEN 'cancelled' WHEN 7 THEN 'expired' END,
       l.queue, l.type, c.method, c.key, nullif(o.key_no, 0),
       CASE c.form WHEN 1 THEN CAST(c.input AS TEXT) ELSE c.input END,
       CASE o.form WHEN 1 THEN CAST(o.result AS TEXT) ELSE o.result END,
       o.error, o.attempts, o.lost, o.redrives, c.priority, o.node,
       strftime('%Y-%m-%dT%H:%M:%S', c.created_at / 1000000, 'unixepoch') || printf('.%06dZ', c.created_at % 1000000),
       strftime('%Y-%m-%dT%H:%M:%S', c.run_at / 1000000, 'unixepoch') || printf('.%06dZ', c.run_at % 1000000),
       strftime('%Y-%m-%dT%H:%M:%S', o.started_at / 1000000, 'unixepoch') || printf('.%06dZ', o.started_at % 1000000),
       strftime('%Y-%m-%dT%H:%M:%S', o.finished_at / 1000000, 'unixepoch') || printf('.%06dZ', o.finished_at % 1000000),
       strftime('%Y-%m-%dT%H:%M:%S', ?2 / 1000000, 'unixepoch') || printf('.%06dZ', ?2 % 1000000),
       c.caller, c.client, c.parent, c.trace, c.tags, c.options, nullif(l.needs, '')
FROM pawl_call c JOIN pawl_outcome o ON o.seq = c.seq JOIN pawl_lane l ON l.lane = c.lane
WHERE c.seq = ?1;

-- name: outcome_walk
-- in:   after bigint, max int
-- out:  seq bigint, finished_at bigint, keep_until bigint
-- why:  Without an index on finished_at: every finish would pay for it, and only archiving would use it.
SELECT seq, finished_at, keep_until FROM pawl_outcome WHERE seq > ?1 ORDER BY seq LIMIT ?2;

-- name: lease_old
-- in:   before bigint, max int
-- out:  token bytea
-- why:  There are few leases, one for each busy worker: an operator's rare query needs no index.
SELECT token FROM pawl_lease WHERE claimed_at < ?1 ORDER BY claimed_at, token LIMIT ?2;

-- name: archive_read
-- in:   id text
-- out:  id, status, queue, type, method, key, input, input_bytes, result, result_bytes, error, node, caller, client, parent,
--       trace, tags, options, needs (text), seq, key_no, attempts, lost, redrives, priority, created_at, run_at, started_at,
--       finished_at, archived_at (bigint)
-- why:  A forgotten id may have been used again: the newest call is shown.
SELECT id, status, queue, type, method, key,
       CASE typeof(input) WHEN 'text' THEN input END, CASE typeof(input) WHEN 'blob' THEN input END,
       CASE typeof(result) WHEN 'text' THEN result END, CASE typeof(result) WHEN 'blob' THEN result END,
       error, node, caller, client, parent, trace, tags, options, needs, seq, key_no, attempts, lost, redrives, priority,
       CAST(strftime('%s', created_at) AS INTEGER) * 1000000 + CAST(substr(created_at, 21, 6) AS INTEGER),
       CAST(strftime('%s', run_at) AS INTEGER) * 1000000 + CAST(substr(run_at, 21, 6) AS INTEGER),
       CAST(strftime('%s', started_at) AS INTEGER) * 1000000 + CAST(substr(started_at, 21, 6) AS INTEGER),
       CAST(strftime('%s', finished_at) AS INTEGER) * 1000000 + CAST(substr(finished_at, 21, 6) AS INTEGER),
       CAST(strftime('%s', archived_at) AS INTEGER) * 1000000 + CAST(substr(archived_at, 21, 6) AS INTEGER)
FROM pawl_archive WHERE id = ?1 ORDER BY seq DESC LIMIT 1;

-- name: archive_len
-- in:   seq bigint
-- out:  bytes bigint
SELECT coalesce(length(c.input), 0) + coalesce(length(o.result), 0)
FROM pawl_call c JOIN pawl_outcome o ON o.seq = c.seq WHERE c.seq = ?1;
