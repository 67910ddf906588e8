-- Process incarnations.

-- name: node_join
-- in:   node text, boot text, host text, version text, slots int, busy int, now bigint
INSERT INTO pawl_node (node, boot, host, version, dead, slots, busy, beats, started_at, beat_at)
VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, 0, ?7, ?7)
ON CONFLICT (node) DO UPDATE SET boot = excluded.boot, host = excluded.host, version = excluded.version,
  dead = 0, slots = excluded.slots, busy = excluded.busy, beats = 0, started_at = excluded.started_at,
  beat_at = excluded.beat_at;

-- name: node_beat
-- in:   node text, boot text, slots int, busy int, now bigint
UPDATE pawl_node SET beats = beats + 1, slots = ?3, busy = ?4, beat_at = ?5
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
-- out:  node text, boot text, host text, version text, dead int, slots int, busy int, beats bigint,
--       started_at bigint, beat_at bigint
SELECT node, boot, host, version, dead, slots, busy, beats, started_at, beat_at FROM pawl_node ORDER BY node;
