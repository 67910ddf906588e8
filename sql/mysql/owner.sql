-- Leases, keys, objects, nodes.

-- name: lease_read
-- in:   token bytea[]
-- out:  token bytea, node text, boot text, worker text, claimed_at bigint, until bigint, rev bigint, held bytea,
--       width int
-- why:  The fence: without a row there is no lease. Sorted, so that two groups do not deadlock.
SELECT l.token, l.node, l.boot, l.worker, l.claimed_at, l.`until`, l.rev, l.held, l.width
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (token VARCHAR(64) PATH '$')) v
STRAIGHT_JOIN pawl_lease l FORCE INDEX (PRIMARY) ON l.token = UNHEX(v.token) FOR UPDATE;

-- name: lease_around
-- in:   low bigint, high bigint
-- out:  as lease_read
SELECT token, node, boot, worker, claimed_at, `until`, rev, held, width FROM pawl_lease WHERE low <= $2 AND high >= $1;

-- name: lease_ended
-- in:   seq bigint[]
-- out:  seq bigint
-- why:  A call that retention removed had ended before; a list that still names it must not restore it.
SELECT v.seq FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
LEFT JOIN pawl_outcome o FORCE INDEX (PRIMARY) ON o.seq = v.seq LEFT JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq
WHERE o.seq IS NOT NULL OR c.seq IS NULL;

-- name: lease_calls
-- in:   seq bigint[]
-- out:  seq bigint, ended int, id text, lane int, key text, priority int, expires_at bigint, options text, wished_at bigint
-- why:  What a finish needs to know of the calls of its lease, and which of them have ended, as in lease_ended.
SELECT v.seq, IF(c.seq IS NULL OR o.seq IS NOT NULL, 1, 0),
       c.id, c.lane, c.`key`, c.priority, c.expires_at, c.options, w.wished_at
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
LEFT JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq
LEFT JOIN pawl_outcome o FORCE INDEX (PRIMARY) ON o.seq = v.seq
LEFT JOIN pawl_cancel w FORCE INDEX (PRIMARY) ON w.seq = v.seq;

-- name: lease_timeouts
-- in:   seq bigint[]
-- out:  seq bigint, timeout_us bigint
-- why:  An extend needs no more than this, and comes every few seconds.
SELECT c.seq, CAST(JSON_UNQUOTE(JSON_EXTRACT(CONVERT(c.options USING utf8mb4), '$.timeout_us')) AS SIGNED)
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = v.seq WHERE c.options LIKE '%"timeout_us"%';

-- name: lease_cancel_requests
-- in:   low bigint, high bigint
-- out:  seq bigint
-- why:  For calls of these leases, or others with seqs between them: there are few at any time.
SELECT seq FROM pawl_cancel FORCE INDEX (PRIMARY) WHERE seq BETWEEN $1 AND $2;

-- name: lease_add
INSERT INTO pawl_lease into(token = $1, node = $2, boot = $3, worker = $4, claimed_at = $5, `until` = $6, rev = $7,
    low = $8, high = $9, held = $10, width = $11);

-- name: lease_write
-- in:   token bytea[], until bigint[], low bigint[], high bigint[], held bytea[]
each{UPDATE pawl_lease SET `until` = $2, rev = rev + 1, low = $3, high = $4, held = $5 WHERE token = $1};

-- name: lease_remove
-- in:   token bytea[]
each{DELETE FROM pawl_lease WHERE token = $1};

-- name: lease_over
-- in:   now bigint, max int
-- out:  token bytea
SELECT token FROM pawl_lease FORCE INDEX (lease_until) WHERE `until` <= $1 ORDER BY `until`, token LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: lease_any_over
SELECT 1 FROM pawl_lease FORCE INDEX (lease_until) WHERE `until` <= $1 LIMIT 1;

-- name: lease_next
-- in:   now bigint
SELECT `until` FROM pawl_lease FORCE INDEX (lease_until) WHERE `until` > $1 ORDER BY `until` LIMIT 1;

-- name: lease_of_node
-- in:   node text, boot text, own int
-- out:  token bytea
-- why:  own 0: leases of every other boot of the node, which a restarted process takes back. A lease with an end
--       belongs to a worker outside the process.
SELECT token FROM pawl_lease WHERE node = $1 AND (boot = $2) = ($3 = 1) AND `until` IS NULL ORDER BY token;

-- name: key_look
-- in:   key text[]
-- out:  key text, state int, head bigint, head_pos bigint, head_no bigint, next_no bigint, held bigint,
--       waiting bigint, later bigint, since bigint, ended_at bigint
SELECT k.`key`, k.state, k.head, k.head_pos, k.head_no, k.next_no, k.held, k.waiting, k.later, k.since, k.ended_at
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (name VARCHAR(510) PATH '$')) v
STRAIGHT_JOIN pawl_key k FORCE INDEX (PRIMARY) ON k.`key` = UNHEX(v.name);

-- name: key_try
-- out:  as key_look
-- why:  An accept never waits for a key.
SELECT k.`key`, k.state, k.head, k.head_pos, k.head_no, k.next_no, k.held, k.waiting, k.later, k.since, k.ended_at
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (name VARCHAR(510) PATH '$')) v
STRAIGHT_JOIN pawl_key k FORCE INDEX (PRIMARY) ON k.`key` = UNHEX(v.name) FOR UPDATE SKIP LOCKED;

-- name: key_wait
-- out:  as key_look
SELECT k.`key`, k.state, k.head, k.head_pos, k.head_no, k.next_no, k.held, k.waiting, k.later, k.since, k.ended_at
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (name VARCHAR(510) PATH '$')) v
STRAIGHT_JOIN pawl_key k FORCE INDEX (PRIMARY) ON k.`key` = UNHEX(v.name) FOR UPDATE;

-- name: key_add
-- in:   key text[]
-- out:  key text
-- why:  Only rows that this insert created are locked by us.
uncounted SET @pawl_maker = UUID_SHORT();
INSERT IGNORE INTO pawl_key (`key`, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at, maker)
VALUES rows($1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, @pawl_maker);
SELECT k.`key` FROM JSON_TABLE(json($1), '$[*]' COLUMNS (name VARCHAR(510) PATH '$')) v
STRAIGHT_JOIN pawl_key k FORCE INDEX (PRIMARY) ON k.`key` = UNHEX(v.name) WHERE k.maker = @pawl_maker;

-- name: key_new
-- in:   as key_write, sorted by key
-- why:  A row with its numbers at the end of the group. An existing row means that another transaction was faster,
--       and rolls the group back.
INSERT INTO pawl_key (`key`, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at, blocked,
                      maker)
VALUES rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, IF($2 = 3, 1, NULL), 0);

-- name: key_write
-- why:  All of these rows exist and are locked by us: nothing is inserted.
uncounted INSERT INTO pawl_key (`key`, state, head, head_pos, head_no, next_no, held, waiting, later, since, ended_at,
                                blocked, maker)
VALUES rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, IF($2 = 3, 1, NULL), 0)
ON DUPLICATE KEY UPDATE state = VALUES(state), head = VALUES(head), head_pos = VALUES(head_pos),
  head_no = VALUES(head_no), next_no = VALUES(next_no), held = VALUES(held), waiting = VALUES(waiting),
  later = VALUES(later), since = VALUES(since), ended_at = VALUES(ended_at), blocked = VALUES(blocked);

-- name: key_remove
-- in:   key text[]
each{DELETE FROM pawl_key WHERE `key` = $1};

-- name: key_list
-- in:   after text, max int
-- out:  key text, state int
SELECT `key`, state FROM pawl_key FORCE INDEX (PRIMARY) WHERE `key` > $1 ORDER BY `key` LIMIT $2;

-- name: key_list_blocked
SELECT `key`, state FROM pawl_key FORCE INDEX (key_blocked) WHERE blocked = 1 AND `key` > $1 ORDER BY `key` LIMIT $2;

-- name: key_note_add
-- in:   key text[], waiting bigint[], later bigint[]
INSERT INTO pawl_hint (`key`, waiting, later) VALUES rows($1, $2, $3);

-- name: key_note_list
-- in:   max int
-- out:  key text
SELECT DISTINCT `key` FROM (SELECT `key` FROM pawl_hint ORDER BY n LIMIT $1) t ORDER BY `key`;

-- name: key_notes_of
-- in:   key text[]
-- out:  n bigint, key text, waiting bigint, later bigint
SELECT h.n, h.`key`, h.waiting, h.later
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (name VARCHAR(510) PATH '$')) v
STRAIGHT_JOIN pawl_hint h FORCE INDEX (hint_key) ON h.`key` = UNHEX(v.name);

-- name: key_note_remove
-- in:   n bigint[]
DELETE h FROM JSON_TABLE(json($1), '$[*]' COLUMNS (n BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_hint h FORCE INDEX (PRIMARY) ON h.n = v.n;

-- name: object_read
-- in:   key text[], type text[]
-- out:  key text, type text, form int, state bytea, version bigint, updated_at bigint
SELECT o.`key`, o.type, o.form, o.state, o.version, o.updated_at
FROM JSON_TABLE(json($1, $2), '$[*]' COLUMNS (name VARCHAR(510) PATH '$[0]', type VARCHAR(510) PATH '$[1]')) v
STRAIGHT_JOIN pawl_object o FORCE INDEX (PRIMARY) ON o.`key` = UNHEX(v.name) AND o.type = UNHEX(v.type);

-- name: object_write
uncounted INSERT INTO pawl_object (`key`, type, form, state, version, updated_at) VALUES rows($1, $2, $3, $4, $5, $6)
ON DUPLICATE KEY UPDATE form = VALUES(form), state = VALUES(state), version = VALUES(version),
  updated_at = VALUES(updated_at);

-- name: object_remove
-- in:   key text[], type text[]
each{DELETE FROM pawl_object WHERE `key` = $1 AND type = $2};

-- name: object_any
-- in:   key text
SELECT 1 FROM pawl_object WHERE `key` = $1 LIMIT 1;

-- name: node_join
-- why:  A request to drain stays, whichever boot of the node it was for.
uncounted INSERT IGNORE INTO pawl_guard (node) VALUES ($1);
INSERT INTO pawl_node (node, boot, host, version, address, roles, queues, has, dead, state, drain, slots,
                       busy, connections, cpu_milli, memory, beats, started_at, beat_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, $9, $10, $11, $12, $13, 0, $14,
        $14)
ON DUPLICATE KEY UPDATE boot = VALUES(boot), host = VALUES(host), version = VALUES(version),
  address = VALUES(address), roles = VALUES(roles), queues = VALUES(queues), has = VALUES(has), dead = 0,
  state = 0,
  slots = VALUES(slots), busy = VALUES(busy), connections = VALUES(connections), cpu_milli = VALUES(cpu_milli),
  memory = VALUES(memory), beats = 0, started_at = VALUES(started_at), beat_at = VALUES(beat_at);

-- name: node_beat
-- why:  now 0: the server's clock.
UPDATE pawl_node SET beats = beats + 1, state = $3, slots = $4, busy = $5, connections = $6, cpu_milli = $7,
  memory = $8, beat_at = IF($9 > 0, $9, CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED))
WHERE node = $1 AND boot = $2 AND dead = 0;

-- name: node_bury
UPDATE pawl_node SET dead = 1 WHERE node = $1 AND boot = $2 AND beats = $3;

-- name: node_lock
-- in:   node text
-- out:  boot text, beats bigint, dead int
-- why:  Runs before its leases are listed: a concurrent claim of the node waits for this row, and then sees the
--       change.
uncounted SELECT 1 INTO @pawl_nothing FROM pawl_guard WHERE node = $1 FOR UPDATE;
SELECT boot, beats, dead FROM pawl_node WHERE node = $1 FOR UPDATE;

-- name: node_read
-- in:   node text
-- out:  as node_lock
SELECT boot, beats, dead FROM pawl_node WHERE node = $1;

-- name: node_share
-- in:   node text
-- out:  as node_lock
-- why:  Does not block the node's own heartbeats, only a transaction that declares it dead.
uncounted SELECT 1 INTO @pawl_nothing FROM pawl_guard WHERE node = $1 LOCK IN SHARE MODE;
SELECT boot, beats, dead FROM pawl_node WHERE node = $1;

-- name: node_remove
uncounted DELETE FROM pawl_guard WHERE node = $1;
DELETE FROM pawl_node WHERE node = $1;

-- name: node_list
SELECT node, boot, host, version, address, roles, queues, has, dead, state, drain, slots, busy, connections,
  cpu_milli, memory, beats, started_at, beat_at FROM pawl_node ORDER BY node;

-- name: node_drain
-- in:   node text, drain int
UPDATE pawl_node SET drain = $2 WHERE node = $1;

-- name: leader_read
-- in:   role text
-- out:  node text, boot text, epoch bigint, acquired_at bigint, until bigint
SELECT node, boot, epoch, acquired_at, `until` FROM pawl_leader WHERE role = $1 FOR UPDATE;

-- name: leader_write
-- in:   role text, node text, boot text, epoch bigint, acquired_at bigint, until bigint
UPDATE pawl_leader SET node = $2, boot = $3, epoch = $4, acquired_at = $5, `until` = $6 WHERE role = $1;

-- name: leader_vacate
-- in:   node text, boot text, own int
-- why:  own 0: the roles of every other boot of the node. By role: then only rows of this table's key are locked.
UPDATE pawl_leader SET `until` = 0
WHERE role IN ('maintenance', 'scheduler') AND node = $1 AND (boot = $2) = ($3 = 1) AND `until` > 0;

-- name: leader_list
-- out:  role text, node text, boot text, epoch bigint, acquired_at bigint, until bigint
SELECT role, node, boot, epoch, acquired_at, `until` FROM pawl_leader ORDER BY role;
