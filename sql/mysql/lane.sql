-- number <-> (queue, type), and paused queues.

-- name: lane_lock
-- in:   schema text
-- why:  Numbers are dense and become visible in order, because inserts are serialized.
SELECT value FROM pawl_meta WHERE name = 'lane' FOR UPDATE;

-- name: lane_list
-- in:   after int
-- out:  lane int, queue text, type text
SELECT lane, queue, type FROM pawl_lane FORCE INDEX (PRIMARY) WHERE lane > $1 ORDER BY lane;

-- name: lane_add
-- in:   lane int[], queue text[], type text[]
INSERT INTO pawl_lane (lane, queue, type) VALUES rows($1, $2, $3);

-- name: queue_list
-- out:  queue text, paused int
-- why:  A queue that is not paused needs no row; earlier versions left a row with 0.
SELECT queue, paused FROM pawl_queue WHERE paused <> 0 ORDER BY queue;

-- name: queue_pause
-- in:   queue text, paused int
INSERT INTO pawl_queue (queue, paused) VALUES ($1, $2) ON DUPLICATE KEY UPDATE paused = VALUES(paused);

-- name: queue_resume
-- in:   queue text
DELETE FROM pawl_queue WHERE queue = $1;
