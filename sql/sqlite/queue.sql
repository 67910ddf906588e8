-- Queues that are paused.

-- name: queue_list
-- out:  queue text, paused int
-- why:  A queue that is not paused needs no row; earlier programs left one with 0 behind.
SELECT queue, paused FROM pawl_queue WHERE paused <> 0 ORDER BY queue;

-- name: queue_pause
-- in:   queue text, paused int
INSERT INTO pawl_queue (queue, paused) VALUES (?1, ?2)
ON CONFLICT (queue) DO UPDATE SET paused = excluded.paused;

-- name: queue_resume
-- in:   queue text
DELETE FROM pawl_queue WHERE queue = ?1;
