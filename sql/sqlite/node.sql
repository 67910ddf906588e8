-- Process incarnations, and roles that one of them has.

-- name: node_join
-- in:   node text, boot text, host text, version text, address text, roles text, queues text, slots int, busy int,
--       connections bigint, cpu_milli bigint, memory bigint, now bigint
-- why:  The wish that it drain stays, whichever boot it was said to.
INSERT INTO pawl_node (node, boot, host, version, address, roles, queues, dead, state, drain, slots, busy,
                       connections, cpu_milli, memory, beats, started_at, beat_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, 0, ?8, ?9, ?10, ?11, ?12, 0, ?13, ?13)
ON CONFLICT (node) DO UPDATE SET boot = excluded.boot, host = excluded.host, version = excluded.version,
  address = excluded.address, roles = excluded.roles, queues = excluded.queues, dead = 0, state = 0,
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

-- name: node_read
-- in:   node text
-- out:  boot text, beats bigint, dead int
SELECT boot, beats, dead FROM pawl_node WHERE node = ?1;

-- name: node_remove
-- in:   node text
DELETE FROM pawl_node WHERE node = ?1;

-- name: node_list
-- out:  node text, boot text, host text, version text, address text, roles text, queues text, dead int, state int,
--       drain int, slots int, busy int, connections bigint, cpu_milli bigint, memory bigint, beats bigint,
--       started_at bigint, beat_at bigint
SELECT node, boot, host, version, address, roles, queues, dead, state, drain, slots, busy, connections, cpu_milli,
  memory, beats, started_at, beat_at FROM pawl_node ORDER BY node;

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
-- why:  own 0: what every other boot of the name had.
UPDATE pawl_leader SET until = 0 WHERE node = ?1 AND (boot = ?2) = (?3 = 1) AND until > 0;

-- name: leader_list
-- out:  role text, node text, boot text, epoch bigint, acquired_at bigint, until bigint
SELECT role, node, boot, epoch, acquired_at, until FROM pawl_leader ORDER BY role;
