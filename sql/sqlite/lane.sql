-- number <-> (queue, type, needs, gate), and paused queues. Numbers rise and are never reused, so a process reads only
-- new ones most of the time.

-- name: lane_list
-- in:   after int
-- out:  lane int, queue text, type text, needs text, gate text, retired_at bigint
SELECT lane, queue, type, needs, gate, retired_at FROM pawl_lane WHERE lane > ?1 ORDER BY lane;

-- name: lane_add
-- in:   lane int, queue text, type text, needs text, gate text
INSERT INTO pawl_lane (lane, queue, type, needs, gate, retired_at) VALUES (?1, ?2, ?3, ?4, ?5, 0);

-- name: lane_look
-- in:   after int, max int
-- out:  lane int, retired_at bigint, used int
-- why:  One step into an index for each lane: has it a call, of any state?
SELECT lane, retired_at, EXISTS (SELECT 1 FROM pawl_call c INDEXED BY pawl_call_lane WHERE c.lane = l.lane)
FROM pawl_lane l WHERE lane > ?1 ORDER BY lane LIMIT ?2;

-- name: lane_retire
-- in:   lane int, now bigint
UPDATE pawl_lane SET retired_at = ?2 WHERE lane = ?1 AND retired_at = 0;

-- name: lane_use
-- in:   lane int
UPDATE pawl_lane SET retired_at = 0 WHERE lane = ?1;

-- name: lane_remove
-- in:   lane int
DELETE FROM pawl_lane WHERE lane = ?1 AND retired_at <> 0;

-- name: queue_list
-- out:  queue text, paused int
-- why:  A queue that is not paused needs no row; earlier versions left a row with 0.
SELECT queue, paused FROM pawl_queue WHERE paused <> 0 ORDER BY queue;

-- name: queue_look
-- out:  queue text, paused int, limits int: the paused queues, then the revision of limits without a name
SELECT queue, paused, 0 FROM pawl_queue WHERE paused <> 0
UNION ALL SELECT '', 0, value FROM pawl_meta WHERE name = 'limits';

-- name: queue_claim
-- out:  as queue_look
SELECT queue, paused, 0 FROM pawl_queue WHERE paused <> 0
UNION ALL SELECT '', 0, value FROM pawl_meta WHERE name = 'limits';

-- name: queue_pause
-- in:   queue text, paused int
INSERT INTO pawl_queue (queue, paused) VALUES (?1, ?2)
ON CONFLICT (queue) DO UPDATE SET paused = excluded.paused;

-- name: queue_resume
-- in:   queue text
DELETE FROM pawl_queue WHERE queue = ?1;
