-- Ended calls that are moved into the archive.

-- name: archive_add
-- in:   seq bigint[], now bigint
INSERT INTO pawl_archive (seq, id, status, queue, type, method, `key`, key_no, input, input_bytes, result, result_bytes,
  error, attempts, lost, redrives, priority, node, created_at, run_at, started_at, finished_at, archived_at, caller,
  client, parent, trace, tags, options, needs)
SELECT c.seq, c.id, ELT(o.status, 'pending', 'processing', 'completed', 'failed', 'dead_letter', 'cancelled', 'expired'),
       l.queue, l.type, c.method, c.`key`, NULLIF(o.key_no, 0),
       IF(c.form = 1, c.input, NULL), IF(c.form = 2, c.input, NULL),
       IF(o.form = 1, o.result, NULL), IF(o.form = 2, o.result, NULL),
       o.error, o.attempts, o.lost, o.redrives, c.priority, o.node,
       FROM_UNIXTIME(c.created_at / 1000000), FROM_UNIXTIME(NULLIF(c.run_at, 0) / 1000000),
       FROM_UNIXTIME(NULLIF(o.started_at, 0) / 1000000), FROM_UNIXTIME(o.finished_at / 1000000),
       FROM_UNIXTIME($2 / 1000000), c.caller, c.client, c.parent, c.trace, c.tags, c.options,
       NULLIF(l.needs, '')
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq
STRAIGHT_JOIN pawl_outcome o FORCE INDEX (PRIMARY) ON o.seq = v.seq
STRAIGHT_JOIN pawl_lane l FORCE INDEX (PRIMARY) ON l.lane = c.lane;

-- name: outcome_walk
-- in:   after bigint, max int
-- out:  seq bigint, finished_at bigint, keep_until bigint
-- why:  Without an index on finished_at: every finish would pay for it, and only archiving would use it.
SELECT seq, finished_at, keep_until FROM pawl_outcome FORCE INDEX (PRIMARY) WHERE seq > $1 ORDER BY seq LIMIT $2;

-- name: lease_old
-- in:   before bigint, max int
-- out:  token bytea
-- why:  There are few leases: an operator's rare query needs no index.
SELECT token FROM pawl_lease WHERE claimed_at < $1 ORDER BY claimed_at, token LIMIT $2 FOR UPDATE SKIP LOCKED;

-- name: archive_read
-- in:   id text
-- out:  id, status, queue, type, method, key, input, input_bytes, result, result_bytes, error, node, caller, client, parent,
--       trace, tags, options, needs (text), seq, key_no, attempts, lost, redrives, priority, created_at, run_at, started_at,
--       finished_at, archived_at (bigint)
-- why:  A forgotten id may have been used again: the newest call is shown.
SELECT id, status, queue, type, method, `key`, input, input_bytes, result, result_bytes, error, node, caller, client, parent,
       trace, tags, options, needs, seq, key_no, attempts, lost, redrives, priority,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', run_at),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', started_at),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', finished_at),
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', archived_at)
FROM pawl_archive WHERE id = $1 ORDER BY seq DESC LIMIT 1;
