-- number <-> (queue, type, needs, gate), and paused queues.

-- name: lane_lock
-- in:   schema text
-- why:  Numbers rise and become visible in order, because those that make or remove lanes take turns.
SELECT pg_advisory_xact_lock(1885435757, hashtext($1::text));

-- name: lane_list
-- in:   after int
-- out:  lane int, queue text, type text, needs text, gate text, retired_at bigint
SELECT lane, queue, type, needs, gate, retired_at FROM pawl.lane WHERE lane > $1::bigint ORDER BY lane;

-- name: lane_add
-- in:   lane int[], queue text[], type text[], needs text[], gate text[]
INSERT INTO pawl.lane (lane, queue, type, needs, gate)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[]);

-- name: lane_look
-- in:   after int, max int
-- out:  lane int, retired_at bigint, used int
-- why:  One step into an index for each lane: has it a call, of any state?
SELECT l.lane, l.retired_at, coalesce(u.one, 0)
FROM (SELECT lane, retired_at FROM pawl.lane WHERE lane > $1::bigint ORDER BY lane LIMIT $2::bigint) l
LEFT JOIN LATERAL (SELECT 1 AS one FROM pawl.call c WHERE c.lane = l.lane ORDER BY c.lane, c.seq LIMIT 1) u ON true
ORDER BY l.lane;

-- name: lane_retire
-- in:   lane int[], now bigint
UPDATE pawl.lane SET retired_at = $2::bigint WHERE lane = ANY ($1::bigint[]) AND retired_at = 0;

-- name: lane_use
-- in:   lane int[]
UPDATE pawl.lane SET retired_at = 0 WHERE lane = ANY ($1::bigint[]);

-- name: lane_remove
-- in:   lane int[]
DELETE FROM pawl.lane WHERE lane = ANY ($1::bigint[]) AND retired_at <> 0;

-- name: limit_lock
-- in:   schema text
-- why:  A change of limits waits for the claims that run, and they for it.
SELECT pg_advisory_xact_lock(1885435758, hashtext($1::text));

-- name: queue_list
-- out:  queue text, paused int
-- why:  A queue that is not paused needs no row; earlier versions left a row with 0.
SELECT queue, paused FROM pawl.queue WHERE paused <> 0 ORDER BY queue;

-- name: queue_look
-- out:  queue text, paused int, limits int: the paused queues, then the revision of limits without a name
SELECT queue, paused, 0 FROM pawl.queue WHERE paused <> 0
UNION ALL SELECT '', 0, value FROM pawl.meta WHERE name = 'limits';

-- name: queue_claim
-- in:   schema text
-- out:  as queue_look
-- why:  No limit changes until this transaction has ended: what it claims obeys the revision that it reads.
SELECT queue, paused, 0 FROM pawl.queue WHERE paused <> 0
UNION ALL SELECT '', 0, pawl.limits_share($1::text);

-- name: queue_pause
-- in:   queue text, paused int
INSERT INTO pawl.queue (queue, paused) VALUES ($1::text, $2::bigint)
ON CONFLICT (queue) DO UPDATE SET paused = excluded.paused;

-- name: queue_resume
-- in:   queue text
DELETE FROM pawl.queue WHERE queue = $1::text;
