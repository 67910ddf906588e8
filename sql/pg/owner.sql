-- Leases, keys, objects, nodes.

-- name: lease_read
-- in:   token bytea[]
-- out:  token bytea, node text, boot text, worker text, claimed_at bigint, until bigint, rev bigint, held bytea,
--       width int
-- why:  The fence: without a row there is no lease. Sorted, so that two groups do not deadlock.
SELECT token, node, boot, worker, claimed_at, until, rev, held, width FROM pawl.lease
WHERE token = ANY ($1::bytea[]) ORDER BY token FOR UPDATE;

-- name: lease_around
-- in:   low bigint, high bigint
-- out:  as lease_read
SELECT token, node, boot, worker, claimed_at, until, rev, held, width FROM pawl.lease
WHERE low <= $2::bigint AND high >= $1::bigint;

-- name: lease_ended
-- in:   seq bigint[]
-- out:  seq bigint
-- why:  A call that retention removed had ended before; a list that still names it must not restore it.
SELECT s FROM unnest($1::bigint[]) s
WHERE EXISTS (SELECT 1 FROM pawl.outcome o WHERE o.seq = s) OR NOT EXISTS (SELECT 1 FROM pawl.call c WHERE c.seq = s);

-- name: lease_calls
-- in:   seq bigint[]
-- out:  seq bigint, ended int, id text, lane int, key text, priority int, expires_at bigint, options text, wished_at bigint
-- why:  What a finish needs to know of the calls of its lease, and which of them have ended, as in lease_ended.
SELECT s.seq, CASE WHEN c.seq IS NULL OR o.seq IS NOT NULL THEN 1 ELSE 0 END,
       c.id, c.lane, c.key, c.priority, c.expires_at, c.options, w.wished_at
FROM unnest($1::bigint[]) s (seq)
LEFT JOIN pawl.call c ON c.seq = s.seq
LEFT JOIN LATERAL (SELECT * FROM pawl.outcome WHERE seq = s.seq OFFSET 0) o ON true
LEFT JOIN LATERAL (SELECT * FROM pawl.cancel WHERE seq = s.seq OFFSET 0) w ON true;

-- name: lease_timeouts
-- in:   seq bigint[]
-- out:  seq bigint, timeout_us bigint
-- why:  An extend needs no more than this, and comes every few seconds.
SELECT c.seq, (c.options::jsonb ->> 'timeout_us')::bigint
FROM unnest($1::bigint[]) s (seq) JOIN pawl.call c ON c.seq = s.seq WHERE c.options LIKE '%"timeout_us"%';

-- name: lease_cancel_requests
-- in:   low bigint, high bigint
-- out:  seq bigint
-- why:  For calls of these leases, or others with seqs between them: there are few at any time.
SELECT seq FROM pawl.cancel WHERE seq BETWEEN $1::bigint AND $2::bigint;

-- name: lease_add
INSERT INTO pawl.lease (token, node, boot, worker, claimed_at, until, rev, low, high, held, width)
SELECT * FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
                     $8::bigint[], $9::bigint[], $10::bytea[], $11::bigint[]);

-- name: lease_write
-- in:   token bytea[], until bigint[], low bigint[], high bigint[], held bytea[]
UPDATE pawl.lease l SET until = v.until, rev = l.rev + 1, low = v.low, high = v.high, held = v.held
FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) v (token, until, low, high, held)
WHERE l.token = v.token;

-- name: lease_remove
-- in:   token bytea[]
DELETE FROM pawl.lease WHERE token = ANY ($1::bytea[]);

-- name: lease_over
-- in:   now bigint, max int
-- out:  token bytea
SELECT token FROM pawl.lease WHERE until IS NOT NULL AND until <= $1::bigint ORDER BY until, token
LIMIT $2::bigint FOR UPDATE SKIP LOCKED;

-- name: lease_any_over
SELECT 1 FROM pawl.lease WHERE until IS NOT NULL AND until <= $1::bigint LIMIT 1;

-- name: lease_next
-- in:   now bigint
SELECT until FROM pawl.lease WHERE until IS NOT NULL AND until > $1::bigint ORDER BY until LIMIT 1;

-- name: lease_of_node
-- in:   node text, boot text, own int
-- out:  token bytea
-- why:  own 0: leases of every other boot of the node, which a restarted process takes back. A lease with an end
--       belongs to a worker outside the process.
SELECT token FROM pawl.lease WHERE node = $1::text AND (boot = $2::text) = ($3::bigint = 1) AND until IS NULL
ORDER BY token;

-- name: key_look
-- in:   key text[]
-- out:  key text, state int, head bigint, head_pos bigint, head_no bigint, next_no bigint, held bigint,
--       waiting bigint, later bigint, since bigint, ended_at bigint
SELECT key, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at FROM pawl.key
WHERE key = ANY ($1::text[]);

-- name: key_try
-- out:  as key_look
-- why:  An accept never waits for a key.
SELECT key, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at FROM pawl.key
WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE SKIP LOCKED;

-- name: key_wait
-- out:  as key_look
SELECT key, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at FROM pawl.key
WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE;

-- name: key_add
-- in:   key text[]
-- out:  key text
INSERT INTO pawl.key (key, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at)
SELECT k, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0 FROM unnest($1::text[]) k ON CONFLICT DO NOTHING RETURNING key;

-- name: key_new
-- in:   as key_write, sorted by key
-- why:  A row with its numbers at the end of the group. An existing row means that another transaction was faster,
--       and rolls the group back.
INSERT INTO pawl.key (key, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                     $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[]);

-- name: key_write
-- why:  shape.c searches for "SELECT * FROM unnest(": columns that are equal in all rows are passed as one value.
UPDATE pawl.key k SET state = v.state, head = v.head, head_pos = v.head_pos, head_no = v.head_no,
  next_no = v.next_no, held = v.held, waiting = v.waiting, later = v.later, since = v.since, ended_at = v.ended_at
FROM (SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                           $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[]))
     v (key, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at)
WHERE k.key = v.key;

-- name: key_remove
-- in:   key text[]
DELETE FROM pawl.key WHERE key = ANY ($1::text[]);

-- name: key_list
-- in:   after text, max int
-- out:  key text, state int
SELECT key, state FROM pawl.key WHERE key > $1::text ORDER BY key LIMIT $2::bigint;

-- name: key_list_blocked
SELECT key, state FROM pawl.key WHERE state = 3 AND key > $1::text ORDER BY key LIMIT $2::bigint;

-- name: key_note_add
-- in:   key text[], waiting bigint[], later bigint[]
INSERT INTO pawl.hint (key, waiting, later) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]);

-- name: key_note_list
-- in:   max int
-- out:  key text
SELECT DISTINCT key FROM (SELECT key FROM pawl.hint ORDER BY n LIMIT $1::bigint) t ORDER BY key;

-- name: key_notes_of
-- in:   key text[]
-- out:  n bigint, key text, waiting bigint, later bigint
SELECT n, key, waiting, later FROM pawl.hint WHERE key = ANY ($1::text[]);

-- name: key_note_remove
-- in:   n bigint[]
DELETE FROM pawl.hint WHERE n = ANY ($1::bigint[]);

-- name: object_read
-- in:   key text[], type text[]
-- out:  key text, type text, form int, state bytea, version bigint, updated_at bigint
SELECT o.key, o.type, o.form, o.state, o.version, o.updated_at
FROM unnest($1::text[], $2::text[]) v (key, type)
JOIN pawl.object o ON o.key = v.key AND o.type = v.type;

-- name: object_write
INSERT INTO pawl.object (key, type, form, state, version, updated_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[])
ON CONFLICT (key, type) DO UPDATE SET form = excluded.form, state = excluded.state,
  version = excluded.version, updated_at = excluded.updated_at;

-- name: object_remove
-- in:   key text[], type text[]
DELETE FROM pawl.object o USING unnest($1::text[], $2::text[]) v (key, type)
WHERE o.key = v.key AND o.type = v.type;

-- name: object_any
-- in:   key text
SELECT 1 FROM pawl.object WHERE key = $1::text LIMIT 1;

-- name: node_join
-- in:   node text, boot text, host text, version text, address text, roles text, queues text, has text,
--       slots int, busy int, connections bigint, cpu_milli bigint, memory bigint, now bigint
-- why:  A request to drain stays, whichever boot of the node it was for.
INSERT INTO pawl.node (node, boot, host, version, address, roles, queues, has, dead, state, drain, slots,
                       busy, connections, cpu_milli, memory, beats, started_at, beat_at)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, 0, 0, 0, $9::bigint,
        $10::bigint, $11::bigint, $12::bigint, $13::bigint, 0, $14::bigint, $14::bigint)
ON CONFLICT (node) DO UPDATE SET boot = excluded.boot, host = excluded.host, version = excluded.version,
  address = excluded.address, roles = excluded.roles, queues = excluded.queues, has = excluded.has,
  dead = 0, state = 0,
  slots = excluded.slots, busy = excluded.busy, connections = excluded.connections, cpu_milli = excluded.cpu_milli,
  memory = excluded.memory, beats = 0, started_at = excluded.started_at, beat_at = excluded.beat_at;

-- name: node_beat
-- in:   node text, boot text, state int, slots int, busy int, connections bigint, cpu_milli bigint, memory bigint,
--       now bigint
-- why:  now 0: the server's clock.
UPDATE pawl.node SET beats = beats + 1, state = $3::bigint, slots = $4::bigint, busy = $5::bigint,
  connections = $6::bigint, cpu_milli = $7::bigint, memory = $8::bigint,
  beat_at = CASE WHEN $9::bigint > 0 THEN $9::bigint ELSE (extract(epoch FROM clock_timestamp()) * 1000000)::bigint END
WHERE node = $1::text AND boot = $2::text AND dead = 0;

-- name: node_bury
UPDATE pawl.node SET dead = 1 WHERE node = $1::text AND boot = $2::text AND beats = $3::bigint;

-- name: node_lock
-- in:   node text
-- out:  boot text, beats bigint, dead int
-- why:  Runs before its leases are listed: a concurrent claim of the node waits for this row, and then sees the
--       change.
SELECT boot, beats, dead FROM pawl.node WHERE node = $1::text FOR UPDATE;

-- name: node_read
-- in:   node text
-- out:  as node_lock
SELECT boot, beats, dead FROM pawl.node WHERE node = $1::text;

-- name: node_share
-- in:   node text
-- out:  as node_lock
-- why:  Does not block the node's own heartbeats, only a transaction that declares it dead.
SELECT boot, beats, dead FROM pawl.node WHERE node = $1::text FOR KEY SHARE;

-- name: node_remove
DELETE FROM pawl.node WHERE node = $1::text;

-- name: node_list
-- out:  node text, boot text, host text, version text, address text, roles text, queues text, has text,
--       dead int, state int, drain int, slots int, busy int, connections bigint, cpu_milli bigint, memory bigint,
--       beats bigint, started_at bigint, beat_at bigint
SELECT node, boot, host, version, address, roles, queues, has, dead, state, drain, slots, busy, connections,
  cpu_milli, memory, beats, started_at, beat_at FROM pawl.node ORDER BY node;

-- name: node_drain
-- in:   node text, drain int
UPDATE pawl.node SET drain = $2::bigint WHERE node = $1::text;

-- name: leader_read
-- in:   role text
-- out:  node text, boot text, epoch bigint, acquired_at bigint, until bigint
SELECT node, boot, epoch, acquired_at, until FROM pawl.leader WHERE role = $1::text FOR UPDATE;

-- name: leader_write
-- in:   role text, node text, boot text, epoch bigint, acquired_at bigint, until bigint
UPDATE pawl.leader SET node = $2::text, boot = $3::text, epoch = $4::bigint, acquired_at = $5::bigint,
  until = $6::bigint WHERE role = $1::text;

-- name: leader_vacate
-- in:   node text, boot text, own int
-- why:  own 0: the roles of every other boot of the node.
UPDATE pawl.leader SET until = 0
WHERE node = $1::text AND (boot = $2::text) = ($3::bigint = 1) AND until > 0;

-- name: leader_list
-- out:  role text, node text, boot text, epoch bigint, acquired_at bigint, until bigint
SELECT role, node, boot, epoch, acquired_at, until FROM pawl.leader ORDER BY role;
