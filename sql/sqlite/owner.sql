-- Leases, keys, objects, nodes.

-- name: lease_read
-- in:   token bytea
-- out:  token bytea, node text, boot text, worker text, claimed_at bigint, until bigint, rev bigint, held bytea,
--       width int
-- why:  The fence: without a row there is no lease.
SELECT token, node, boot, worker, claimed_at, until, rev, held, width FROM pawl_lease WHERE token = ?1;

-- name: lease_around
-- in:   low bigint, high bigint
-- out:  as lease_read
SELECT token, node, boot, worker, claimed_at, until, rev, held, width FROM pawl_lease WHERE low <= ?2 AND high >= ?1;

-- name: lease_ended
-- in:   seq bigint
-- out:  seq bigint
-- why:  A call that retention removed had ended before; a list that still names it must not restore it.
SELECT ?1 WHERE EXISTS (SELECT 1 FROM pawl_outcome WHERE seq = ?1) OR NOT EXISTS (SELECT 1 FROM pawl_call WHERE seq = ?1);

-- name: lease_calls
-- in:   seq bigint
-- out:  seq bigint, ended int, id text, lane int, key text, priority int, expires_at bigint, options text, wished_at bigint
-- why:  What a finish needs to know of the calls of its lease, and which of them have ended, as in lease_ended.
SELECT s.seq, CASE WHEN c.seq IS NULL OR o.seq IS NOT NULL THEN 1 ELSE 0 END,
       c.id, c.lane, c.key, c.priority, c.expires_at, c.options, w.wished_at
FROM (SELECT ?1 AS seq) s
LEFT JOIN pawl_call c ON c.seq = s.seq
LEFT JOIN pawl_outcome o ON o.seq = s.seq
LEFT JOIN pawl_cancel w ON w.seq = s.seq;

-- name: lease_timeouts
-- in:   seq bigint
-- out:  seq bigint, timeout_us bigint
-- why:  An extend needs no more than this, and comes every few seconds.
SELECT seq, json_extract(options, '$.timeout_us') FROM pawl_call WHERE seq = ?1 AND options LIKE '%"timeout_us"%';

-- name: lease_cancel_requests
-- in:   low bigint, high bigint
-- out:  seq bigint
SELECT seq FROM pawl_cancel WHERE seq BETWEEN ?1 AND ?2;

-- name: lease_add
-- in:   token bytea, node text, boot text, worker text, claimed_at bigint, until bigint, rev bigint, low bigint,
--       high bigint, held bytea, width int
INSERT INTO pawl_lease (token, node, boot, worker, claimed_at, until, rev, low, high, held, width)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: lease_write
-- in:   token bytea, until bigint, low bigint, high bigint, held bytea
UPDATE pawl_lease SET until = ?2, rev = rev + 1, low = ?3, high = ?4, held = ?5 WHERE token = ?1;

-- name: lease_remove
-- in:   token bytea
DELETE FROM pawl_lease WHERE token = ?1;

-- name: lease_over
-- in:   now bigint, max int
-- out:  token bytea
SELECT token FROM pawl_lease INDEXED BY pawl_lease_until
WHERE until IS NOT NULL AND until <= ?1 ORDER BY until, token LIMIT ?2;

-- name: lease_any_over
-- in:   now bigint
SELECT 1 FROM pawl_lease INDEXED BY pawl_lease_until WHERE until IS NOT NULL AND until <= ?1 LIMIT 1;

-- name: lease_next
-- in:   now bigint
-- out:  until bigint
SELECT until FROM pawl_lease INDEXED BY pawl_lease_until
WHERE until IS NOT NULL AND until > ?1 ORDER BY until LIMIT 1;

-- name: lease_of_node
-- in:   node text, boot text, own int
-- out:  token bytea
-- why:  own 0: leases of every other boot of the node, which a restarted process takes back. A lease with an end
--       belongs to a worker outside the process.
SELECT token FROM pawl_lease INDEXED BY pawl_lease_owner
WHERE node = ?1 AND (boot = ?2) = (?3 = 1) AND until IS NULL ORDER BY token;

-- name: key_look
-- in:   key text
-- out:  key text, state int, head bigint, head_pos bigint, head_no bigint, next_no bigint, held bigint,
--       waiting bigint, later bigint, since bigint, ended_at bigint
SELECT key, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at FROM pawl_key WHERE key = ?1;

-- name: key_write
-- in:   key text, state int, head bigint, head_pos bigint, head_no bigint, next_no bigint, held bigint,
--       waiting bigint, later bigint, since bigint, ended_at bigint
-- why:  No other connection can insert the row meanwhile, so it is inserted when it is first written.
REPLACE INTO pawl_key (key, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: key_remove
-- in:   key text
DELETE FROM pawl_key WHERE key = ?1;

-- name: key_list
-- in:   after text, max int
-- out:  key text, state int
SELECT key, state FROM pawl_key WHERE key > ?1 ORDER BY key LIMIT ?2;

-- name: key_list_blocked
SELECT key, state FROM pawl_key INDEXED BY pawl_key_blocked WHERE state = 3 AND key > ?1 ORDER BY key LIMIT ?2;

-- name: object_read
-- in:   key text, type text
-- out:  key text, type text, form int, state bytea, version bigint, updated_at bigint
SELECT key, type, form, state, version, updated_at FROM pawl_object WHERE key = ?1 AND type = ?2;

-- name: object_write
-- in:   key text, type text, form int, state bytea, version bigint, updated_at bigint
INSERT INTO pawl_object (key, type, form, state, version, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (key, type) DO UPDATE SET form = ?3, state = ?4, version = ?5, updated_at = ?6;

-- name: object_remove
-- in:   key text, type text
DELETE FROM pawl_object WHERE key = ?1 AND type = ?2;

-- name: object_any
-- in:   key text
-- out:  one int
SELECT 1 FROM pawl_object WHERE key = ?1 LIMIT 1;

-- name: node_join
-- in:   node text, boot text, host text, version text, address text, roles text, queues text, has text,
--       slots int, busy int, connections bigint, cpu_milli bigint, memory bigint, now bigint
-- why:  A request to drain stays, whichever boot of the node it was for.
INSERT INTO pawl_node (node, boot, host, version, address, roles, queues, has, dead, state, drain, slots,
                       busy, connections, cpu_milli, memory, beats, started_at, beat_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, 0, ?9, ?10, ?11, ?12, ?13, 0, ?14,
        ?14)
ON CONFLICT (node) DO UPDATE SET boot = excluded.boot, host = excluded.host, version = excluded.version,
  address = excluded.address, roles = excluded.roles, queues = excluded.queues, has = excluded.has,
  dead = 0, state = 0,
  slots = excluded.slots, busy = excluded.busy, connections = excluded.connections, cpu_milli = excluded.cpu_milli,
  memory = excluded.memory, beats = 0, started_at = excluded.started_at, beat_at = excluded.beat_at;

-- name: node_beat
-- in:   node text, boot text, state int, slots int, busy int, connections bigint, cpu_milli bigint, memory bigint,
--       now bigint
UPDATE pawl_node SET beats = beats + 1, state = ?3, slots = ?4, busy = ?5, connections = ?6, cpu_milli = ?7,
  memory = ?8, beat_at = ?9
WHERE node = ?1 AND boot = ?2 AND dead = 0;

-- name: node_bury
-- in:   node text, boot text, beats bigint
UPDATE pawl_node SET dead = 1 WHERE node = ?1 AND boot = ?2 AND beats = ?3;

-- name: node_lock
-- in:   node text
-- out:  boot text, beats bigint, dead int
SELECT boot, beats, dead FROM pawl_node WHERE node = ?1;

-- name: node_read
-- in:   node text
-- out:  boot text, beats bigint, dead int
SELECT boot, beats, dead FROM pawl_node WHERE node = ?1;

-- name: node_share
-- in:   node text
-- out:  as node_lock
SELECT boot, beats, dead FROM pawl_node WHERE node = ?1;

-- name: node_remove
-- in:   node text
DELETE FROM pawl_node WHERE node = ?1;

-- name: node_list
-- out:  node text, boot text, host text, version text, address text, roles text, queues text, has text,
--       dead int, state int, drain int, slots int, busy int, connections bigint, cpu_milli bigint, memory bigint,
--       beats bigint, started_at bigint, beat_at bigint
SELECT node, boot, host, version, address, roles, queues, has, dead, state, drain, slots, busy, connections,
  cpu_milli, memory, beats, started_at, beat_at FROM pawl_node ORDER BY node;

-- name: node_drain
-- in:   node text, drain int
UPDATE pawl_node SET drain = ?2 WHERE node = ?1;

-- name: leader_read
-- in:   role text
-- out:  node text, boot text, epoch bigint, acquired_at bigint, until bigint
SELECT node, boot, epoch, acquired_at, until FROM pawl_leader WHERE role = ?1;

-- name: leader_write
-- in:   role text, node text, boot text, epoch bigint, acquired_at bigint, until bigint
UPDATE pawl_leader SET node = ?2, boot = ?3, epoch = ?4, acquired_at = ?5, until = ?6 WHERE role = ?1;

-- name: leader_vacate
-- in:   node text, boot text, own int
-- why:  own 0: the roles of every other boot of the node.
UPDATE pawl_leader SET until = 0 WHERE node = ?1 AND (boot = ?2) = (?3 = 1) AND until > 0;

-- name: leader_list
-- out:  role text, node text, boot text, epoch bigint, acquired_at bigint, until bigint
SELECT role, node, boot, epoch, acquired_at, until FROM pawl_leader ORDER BY role;

-- name: look
-- in:   now bigint, token bytea, node text, boot text
-- out:  now bigint, lease int, replaced int, hint int, expires_at bigint, until bigint, joins_at bigint, run_at bigint,
--       version bigint: 0, asked elsewhere
-- why:  Runs outside of any transaction, and is most of the time all that a sweep or a claim needs: an idle process
--       does not take the write lock. Everything that a sweep or a claim processes must be asked for here, or an idle
--       process never finds it.
SELECT ?1,
  (SELECT count(*) FROM pawl_lease WHERE token = CAST(?2 AS BLOB)),
  (SELECT count(*) FROM pawl_node WHERE node = ?3 AND (dead <> 0 OR boot <> ?4)),
  0,
  (SELECT expires_at FROM pawl_expiry ORDER BY expires_at LIMIT 1),
  (SELECT until FROM pawl_lease INDEXED BY pawl_lease_until WHERE until IS NOT NULL ORDER BY until LIMIT 1),
  (SELECT run_at FROM pawl_line INDEXED BY pawl_line_later WHERE pos < 0 ORDER BY run_at LIMIT 1),
  (SELECT run_at FROM pawl_ready LIMIT 1),
  0;
