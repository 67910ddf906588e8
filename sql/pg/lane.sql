-- number <-> (queue, type), and paused queues.

-- name: lane_lock
-- in:   schema text
-- why:  Numbers are dense and become visible in order, because inserts are serialized.
SELECT pg_advisory_xact_lock(1885435757, hashtext($1::text));

-- name: lane_list
-- in:   after int
-- out:  lane int, queue text, type text
SELECT lane, queue, type FROM pawl.lane WHERE lane > $1::bigint ORDER BY lane;

-- name: lane_add
-- in:   lane int[], queue text[], type text[]
INSERT INTO pawl.lane (lane, queue, type) SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[]);

-- name: queue_list
-- out:  queue text, paused int
-- why:  A queue that is not paused needs no row; earlier versions left a row with 0.
SELECT queue, paused FROM pawl.queue WHERE paused <> 0 ORDER BY queue;

-- name: queue_pause
-- in:   queue text, paused int
INSERT INTO pawl.queue (queue, paused) VALUES ($1::text, $2::bigint)
ON CONFLICT (queue) DO UPDATE SET paused = excluded.paused;

-- name: queue_resume
-- in:   queue text
DELETE FROM pawl.queue WHERE queue = $1::text;
