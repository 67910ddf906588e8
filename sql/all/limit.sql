-- Limits, their slots, and what of their rates is used.

-- name: limit_read
-- out:  number, name, queue, type, key_prefix, running, rate, per_us, burst, created_at, updated_at
-- why:  All of them: a handle remembers them until the revision of limits moves.
SELECT number, name, queue, type, key_prefix, running, rate, per_us, burst, created_at, updated_at
FROM pawl.limits ORDER BY name;

-- name: limit_raise
-- out:  rows: 1
-- why:  Every claim reads the revision.
UPDATE pawl.meta SET value = value + 1 WHERE name = 'limits';

-- name: limit_rev
-- out:  value
SELECT value FROM pawl.meta WHERE name = 'limits';

-- name: limit_add
INSERT INTO pawl.limits (number, name, queue, type, key_prefix, running, rate, per_us, burst, created_at, updated_at)
VALUES ($1:int, $2:text, $3:text, $4:text, $5:text, $6:int, $7:int, $8:int, $9:int, $10:int, $11:int);

-- name: limit_put
-- in:   number, running, rate, per_us, burst, updated_at
UPDATE pawl.limits SET running = $2:int, rate = $3:int, per_us = $4:int, burst = $5:int, updated_at = $6:int
WHERE number = $1:int;

-- name: limit_remove
-- in:   number
DELETE FROM pawl.limits WHERE number = $1:int;

-- name: slot_free
-- in:   number, max int
-- out:  no
-- why:  What another claim has locked is skipped: it takes it, or leaves it for the next look.
SELECT no FROM pawl.slot WHERE number = $1:int AND seq IS NULL LIMIT $2:int FOR UPDATE SKIP LOCKED;

-- name: slot_any
-- in:   number
-- out:  no
SELECT no FROM pawl.slot WHERE number = $1:int AND seq IS NULL LIMIT 1;

-- name: slot_take
-- in:   number int[], no int[], seq int[]
each UPDATE pawl.slot SET seq = $3:int[] WHERE number = $1:int[] AND no = $2:int[] AND seq IS NULL;

-- name: slot_of_call
-- in:   seq int[], sorted
-- out:  number, no, seq, surplus, 1 if a row of this limit is surplus
-- why:  Rows of calls that leave their lease: only a change of limits locks them besides.
each SELECT s.number, s.no, s.seq, s.surplus,
  (SELECT 1 FROM pawl.slot x WHERE x.number = s.number AND x.surplus = 1 LIMIT 1)
FROM pawl.slot s WHERE s.seq = $1:int[] FOR UPDATE;

-- name: slot_surplus
-- in:   number
-- out:  no
-- why:  One that another transaction has locked is about to go, but only if that transaction commits.
SELECT no FROM pawl.slot WHERE number = $1:int AND surplus = 1 ORDER BY no LIMIT 1 FOR UPDATE;

-- name: slot_surplus_any
-- in:   number
-- out:  no
SELECT no FROM pawl.slot WHERE number = $1:int AND surplus = 1 LIMIT 1;

-- name: slot_leave
-- in:   number int[], no int[]
each UPDATE pawl.slot SET seq = NULL WHERE number = $1:int[] AND no = $2:int[] AND seq IS NOT NULL;

-- name: slot_keep
-- in:   number int[], no int[]
each UPDATE pawl.slot SET surplus = 0 WHERE number = $1:int[] AND no = $2:int[] AND surplus = 1;

-- name: slot_mark
-- in:   number int[], no int[]
each UPDATE pawl.slot SET surplus = 1 WHERE number = $1:int[] AND no = $2:int[] AND surplus = 0;

-- name: slot_remove
-- in:   number int[], no int[]
each DELETE FROM pawl.slot WHERE number = $1:int[] AND no = $2:int[];

-- name: slot_add
-- in:   number int[], no int[], seq int[], surplus int[]
INSERT INTO pawl.slot (number, no, seq, surplus) rows($1:int[], $2:int[], $3:int[], $4:int[]);

-- name: slot_lock
-- in:   number
-- out:  no, seq, surplus
-- why:  For a change of the limit, under the lock that no claim runs beside.
SELECT no, seq, surplus FROM pawl.slot WHERE number = $1:int ORDER BY no FOR UPDATE;

-- name: slot_count
-- out:  number, rows that a call has, rows
SELECT number, count(seq), count(*) FROM pawl.slot GROUP BY number ORDER BY number;

-- name: bucket_lock
-- in:   number
-- out:  used_ns
SELECT used_ns FROM pawl.bucket WHERE number = $1:int FOR UPDATE SKIP LOCKED;

-- name: bucket_any
-- in:   number
-- out:  used_ns
SELECT used_ns FROM pawl.bucket WHERE number = $1:int;

-- name: bucket_put
-- in:   number int[], used_ns int[]
each UPDATE pawl.bucket SET used_ns = $2:int[] WHERE number = $1:int[];

-- name: bucket_add
-- in:   number, used_ns
INSERT ONCE INTO pawl.bucket (number, used_ns) VALUES ($1:int, $2:int);

-- name: bucket_remove
-- in:   number
DELETE FROM pawl.bucket WHERE number = $1:int;

-- name: lease_tokens
-- out:  token
-- why:  For a change of limits, which locks them next: no claim runs beside it.
SELECT token FROM pawl.lease ORDER BY token;
