-- Queues somebody paused, or resumed again.

-- name: queue_list
-- out:  queue text, paused int
SELECT queue, paused FROM pawl_queue ORDER BY queue;

-- name: queue_pause
-- in:   queue text, paused int
INSERT INTO pawl_queue (queue, paused) VALUES (?1, ?2)
ON CONFLICT (queue) DO UPDATE SET paused = excluded.paused;
