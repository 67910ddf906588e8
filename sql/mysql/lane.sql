-- number <-> (queue, type, needs, gate), and paused queues.

-- name: lane_lock
-- in:   schema text
-- why:  Numbers rise and become visible in order, because those that make or remove lanes take turns.
SELECT value FROM pawl_meta WHERE name = 'lane' FOR UPDATE;

-- name: lane_list
-- in:   after int
-- out:  lane int, queue text, type text, needs text, gate text, retired_at bigint
SELECT lane, queue, type, needs, gate, retired_at FROM pawl_lane FORCE INDEX (PRIMARY) WHERE lane > $1 ORDER BY lane;

-- name: lane_add
-- in:   lane int[], queue text[], type text[], needs text[], gate text[]
INSERT INTO pawl_lane (lane, queue, type, needs, gate) VALUES rows($1, $2, $3, $4, $5);

-- name: lane_look
-- in:   after int, max int
-- out:  lane int, retired_at bigint, used int
-- why:  One step into an index for each lane: has it a call, of any state?
SELECT l.lane, l.retired_at, EXISTS (SELECT 1 FROM pawl_call c FORCE INDEX (call_lane) WHERE c.lane = l.lane LIMIT 1)
FROM pawl_lane l FORCE INDEX (PRIMARY) WHERE l.lane > $1 ORDER BY l.lane LIMIT $2;

-- name: lane_retire
-- in:   lane int[], now bigint
each{UPDATE pawl_lane SET retired_at = $2 WHERE lane = $1 AND retired_at = 0};

-- name: lane_use
-- in:   lane int[]
each{UPDATE pawl_lane SET retired_at = 0 WHERE lane = $1};

-- name: lane_remove
-- in:   lane int[]
each{DELETE FROM pawl_lane WHERE lane = $1 AND retired_at <> 0};

-- name: limit_lock
-- in:   schema text
-- why:  A change of limits waits for the claims that run, and they for it.
SELECT value FROM pawl_meta WHERE name = 'limits' FOR UPDATE;

-- name: queue_list
-- out:  queue text, paused int
-- why:  A queue that is not paused needs no row; earlier versions left a row with 0.
SELECT queue, paused FROM pawl_queue WHERE paused <> 0 ORDER BY queue;

-- name: queue_look
-- out:  queue text, paused int, limits int: the paused queues, then the revision of limits without a name
SELECT queue, paused, 0 FROM pawl_queue WHERE paused <> 0
UNION ALL SELECT '', 0, value FROM pawl_meta WHERE name = 'limits';

-- name: queue_claim
-- in:   schema text
-- out:  as queue_look
-- why:  No limit changes until this transaction has ended: what it claims obeys the revision that it reads.
SELECT queue, paused, 0 FROM pawl_queue WHERE paused <> 0
UNION ALL (SELECT '', 0, value FROM pawl_meta WHERE name = 'limits' LOCK IN SHARE MODE);

-- name: queue_pause
-- in:   queue text, paused int
INSERT INTO pawl_queue (queue, paused) VALUES ($1, $2) ON DUPLICATE KEY UPDATE paused = VALUES(paused);

-- name: queue_resume
-- in:   queue text
DELETE FROM pawl_queue WHERE queue = $1;
