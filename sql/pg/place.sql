-- The places of calls: ready, key queues (line), expiry, cancel requests, outcomes, attempts.

-- name: ready_add
INSERT INTO pawl.ready (seq, track, rank, run_at, attempts, lost, redrives, pos, key_no)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                     $7::bigint[], $8::bigint[], $9::bigint[]);

-- name: ready_remove
-- in:   seq bigint[], track int[], rank int[], run_at bigint[]
-- why:  One by one, then by ctid: for many numbers at once the server may scan a whole index, if the statement was
--       planned when the table looked empty; with an old snapshot open the index is long.
DELETE FROM pawl.ready WHERE ctid = ANY (ARRAY(
  SELECT (SELECT r.ctid FROM pawl.ready r
          WHERE r.track = v.track AND r.rank = v.rank AND r.run_at = v.run_at AND r.seq = v.seq)
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) v (seq, track, rank, run_at)));

-- name: ready_pairs
-- out:  track int, rank int, run_at bigint
-- why:  Skips from one used (track, rank) to the next, without reading the other rows of each.
WITH RECURSIVE p (track, rank, run_at) AS (
  (SELECT track, rank, run_at FROM pawl.ready ORDER BY track, rank, run_at, seq LIMIT 1)
  UNION ALL
  SELECT n.track, n.rank, n.run_at FROM p CROSS JOIN LATERAL (
    SELECT track, rank, run_at FROM pawl.ready r WHERE (r.track, r.rank) > (p.track, p.rank)
    ORDER BY track, rank, run_at, seq LIMIT 1) n)
SELECT track, rank, run_at FROM p;

-- name: ready_known
-- in:   track int[], rank int[], run_at bigint[], seq bigint[]
-- out:  as ready_pairs
-- why:  Only for known pairs, each from the place where its last claim ended: rows that were claimed before stay in
--       the index for as long as an open snapshot may see them.
SELECT k.track, k.rank, n.run_at FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) k (track, rank, run_at, seq)
CROSS JOIN LATERAL (
  SELECT r.run_at FROM pawl.ready r
  WHERE r.track = k.track AND r.rank = k.rank AND (r.run_at, r.seq) >= (k.run_at, k.seq)
  ORDER BY r.run_at, r.seq LIMIT 1) n;

-- name: ready_take
-- in:   track int[], rank int, now bigint, max int, len bigint, run_at bigint[], seq bigint[]: from there on
-- out:  seq bigint, track int, run_at bigint, attempts int, lost int, redrives int, pos bigint, key_no bigint; of the
--       call what line_take has, too
-- why:  Rows that another transaction is claiming are skipped. Inputs are returned as long as all of them together
--       are not longer than len.
SELECT r.seq, r.track, r.run_at, r.attempts, r.lost, r.redrives, r.pos, r.key_no,
       c.id, c.method, c.key, c.created_at, c.run_at, c.expires_at, c.options, c.caller, c.client,
       c.parent, c.trace, c.tags, c.form, coalesce(octet_length(c.input), -1)::bigint,
       CASE WHEN sum(octet_length(c.input)) OVER (ORDER BY r.run_at, r.seq) <= $5::bigint THEN c.input END,
       c.lane, c.priority, w.wished_at
FROM (
  SELECT q.* FROM unnest($1::bigint[], $6::bigint[], $7::bigint[]) t (track, run_at, seq)
  CROSS JOIN LATERAL (
    SELECT seq, track, run_at, attempts, lost, redrives, pos, key_no FROM pawl.ready r
    WHERE r.track = t.track AND r.rank = $2::bigint AND (r.run_at, r.seq) >= (t.run_at, t.seq)
      AND r.run_at <= $3::bigint
    ORDER BY run_at, seq LIMIT $4::bigint FOR UPDATE SKIP LOCKED) q
  ORDER BY q.run_at, q.seq LIMIT $4::bigint) r
JOIN pawl.call c ON c.seq = r.seq
LEFT JOIN LATERAL (SELECT * FROM pawl.cancel WHERE seq = r.seq OFFSET 0) w ON true
ORDER BY r.run_at, r.seq;

-- name: ready_grab
-- in:   as ready_take; len: of each input
-- out:  as ready_take up to the input, in no order. What nearly all calls have in common is null: run_at and created_at
--       where they are the run_at of the row of ready; form where it is 1; the length of an input that is there
-- why:  The same when all calls will be taken: they are deleted as they are found, by ctid, which costs as much as
--       locking them. A call that is not taken after all is inserted again. A column costs as much as a probe of an
--       index. The ARRAY, and a range instead of an equality, keep the server from scanning a table that looked empty
--       when the statement was planned: r is reached only by ctid, and c only from r.
DELETE FROM pawl.ready r USING pawl.call c
WHERE c.seq >= r.seq AND c.seq <= r.seq AND r.ctid = ANY (ARRAY(
  SELECT q.ctid FROM unnest($1::bigint[], $6::bigint[], $7::bigint[]) t (track, run_at, seq)
  CROSS JOIN LATERAL (
    SELECT r.ctid, run_at, seq FROM pawl.ready r
    WHERE r.track = t.track AND r.rank = $2::bigint AND (r.run_at, r.seq) >= (t.run_at, t.seq)
      AND r.run_at <= $3::bigint
    ORDER BY run_at, seq LIMIT $4::bigint FOR UPDATE SKIP LOCKED) q
  ORDER BY q.run_at, q.seq LIMIT $4::bigint))
RETURNING r.seq, r.track, r.run_at, NULLIF(r.attempts, 0), NULLIF(r.lost, 0), NULLIF(r.redrives, 0),
  CASE WHEN c.key IS NOT NULL THEN r.pos END, CASE WHEN c.key IS NOT NULL THEN r.key_no END, c.id, c.method, c.key,
  NULLIF(c.created_at, r.run_at), NULLIF(c.run_at, r.run_at), c.expires_at, c.options, c.caller, c.client, c.parent, c.trace, c.tags, NULLIF(c.form, 1),
  CASE WHEN octet_length(c.input) > $5::bigint THEN octet_length(c.input)::bigint END,
  CASE WHEN octet_length(c.input) <= $5::bigint THEN c.input END;

-- name: ready_grab_one
-- in:   as ready_grab; track, run_at and seq are those of one track
-- out:  as ready_grab
-- why:  Most claims find only one track due, which needs no sorting.
DELETE FROM pawl.ready r USING pawl.call c
WHERE c.seq >= r.seq AND c.seq <= r.seq AND r.ctid = ANY (ARRAY(
  SELECT r.ctid FROM pawl.ready r
  WHERE r.track = $1::bigint AND r.rank = $2::bigint AND (r.run_at, r.seq) >= ($6::bigint, $7::bigint)
    AND r.run_at <= $3::bigint
  ORDER BY run_at, seq LIMIT $4::bigint FOR UPDATE SKIP LOCKED))
RETURNING r.seq, r.track, r.run_at, NULLIF(r.attempts, 0), NULLIF(r.lost, 0), NULLIF(r.redrives, 0),
  CASE WHEN c.key IS NOT NULL THEN r.pos END, CASE WHEN c.key IS NOT NULL THEN r.key_no END, c.id, c.method, c.key,
  NULLIF(c.created_at, r.run_at), NULLIF(c.run_at, r.run_at), c.expires_at, c.options, c.caller, c.client, c.parent, c.trace, c.tags, NULLIF(c.form, 1),
  CASE WHEN octet_length(c.input) > $5::bigint THEN octet_length(c.input)::bigint END,
  CASE WHEN octet_length(c.input) <= $5::bigint THEN c.input END;

-- name: ready_count
-- in:   track int[], rank int[], until bigint, max int
-- out:  track int, n bigint
SELECT v.track, (SELECT count(*) FROM (SELECT 1 FROM pawl.ready r
  WHERE r.track = v.track AND r.rank = v.rank AND r.run_at <= $3::bigint LIMIT $4::bigint) t)
FROM unnest($1::bigint[], $2::bigint[]) v (track, rank);

-- name: line_add
INSERT INTO pawl.line (key, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                     $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[]);

-- name: line_remove
-- in:   seq bigint[]
DELETE FROM pawl.line WHERE seq = ANY ($1::bigint[]);

-- name: line_run
-- in:   key text[], max int
-- out:  key text, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no
SELECT k.key, n.pos, n.seq, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no
FROM unnest($1::text[]) k (key)
CROSS JOIN LATERAL (SELECT * FROM pawl.line WHERE line.key = k.key AND pos > 0 ORDER BY pos LIMIT $2::bigint) n;

-- name: line_take
-- in:   key text[], max int[], len bigint
-- out:  key text, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no; of the call: id text,
--       method text, key text, created_at bigint, run_at bigint, expires_at bigint, options text, caller text,
--       client text, parent text, trace text, tags text, form int, length bigint (below 0: none), input bytea,
--       lane int, priority int, wished_at bigint
SELECT k.key, n.pos, n.seq, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no,
       c.id, c.method, c.key, c.created_at, c.run_at, c.expires_at, c.options, c.caller, c.client,
       c.parent, c.trace, c.tags, c.form, coalesce(octet_length(c.input), -1)::bigint,
       CASE WHEN sum(octet_length(c.input)) OVER (ORDER BY k.at, n.pos) <= $3::bigint THEN c.input END,
       c.lane, c.priority, w.wished_at
FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY k (key, max, at)
CROSS JOIN LATERAL (SELECT * FROM pawl.line WHERE line.key = k.key AND pos > 0 ORDER BY pos LIMIT k.max) n
JOIN pawl.call c ON c.seq = n.seq
LEFT JOIN LATERAL (SELECT * FROM pawl.cancel WHERE seq = n.seq OFFSET 0) w ON true
ORDER BY k.at, n.pos;

-- name: line_newer
-- in:   key text, pos bigint
-- out:  n bigint
-- why:  From the end: most requests for a position come from a call that has just joined.
SELECT count(*) FROM pawl.line WHERE key = $1::text AND pos > $2::bigint;

-- name: line_of_key
-- in:   key text, max int
-- out:  seq bigint
-- why:  All calls of the key, also delayed ones.
SELECT seq FROM pawl.line WHERE key = $1::text ORDER BY pos LIMIT $2::bigint;

-- name: line_due
-- in:   now bigint, max int
-- out:  seq bigint, key text
SELECT seq, key FROM pawl.line WHERE pos < 0 AND run_at <= $1::bigint ORDER BY run_at, seq LIMIT $2::bigint
FOR UPDATE SKIP LOCKED;

-- name: line_any_due
-- in:   now bigint
SELECT 1 FROM pawl.line WHERE pos < 0 AND run_at <= $1::bigint LIMIT 1;

-- name: claim_look
-- out:  inbox int, hint int: null when there is none; run_at bigint: when the first of the delayed calls joins
-- why:  Everything that a claim must know before it reads ready calls, in one statement; most of the time there is
--       nothing.
SELECT (SELECT 1 FROM pawl.inbox WHERE refused_at IS NULL LIMIT 1), (SELECT 1 FROM pawl.hint ORDER BY n LIMIT 1),
  (SELECT run_at FROM pawl.line WHERE pos < 0 ORDER BY run_at, seq LIMIT 1);

-- name: line_next
-- in:   now bigint
-- out:  run_at bigint
SELECT run_at FROM pawl.line WHERE pos < 0 AND run_at > $1::bigint ORDER BY run_at LIMIT 1;

-- name: line_list
-- in:   now bigint, max int
-- out:  lane int, n bigint, due bigint, oldest bigint
SELECT lane, count(*), count(*) FILTER (WHERE run_at <= $1::bigint), min(run_at)
FROM (SELECT lane, run_at FROM pawl.line LIMIT $2::bigint) t GROUP BY lane;

-- name: expiry_add
-- in:   expires_at bigint[], seq bigint[]
INSERT INTO pawl.expiry (expires_at, seq) SELECT * FROM unnest($1::bigint[], $2::bigint[]);

-- name: expiry_remove
-- in:   expires_at bigint[], seq bigint[]
DELETE FROM pawl.expiry e USING unnest($1::bigint[], $2::bigint[]) v (expires_at, seq)
WHERE e.expires_at = v.expires_at AND e.seq = v.seq;

-- name: expiry_due
-- in:   now bigint, max int
-- out:  seq bigint
SELECT seq FROM pawl.expiry WHERE expires_at <= $1::bigint ORDER BY expires_at, seq LIMIT $2::bigint
FOR UPDATE SKIP LOCKED;

-- name: expiry_any_due
SELECT 1 FROM pawl.expiry WHERE expires_at <= $1::bigint LIMIT 1;

-- name: expiry_next
-- in:   now bigint
SELECT expires_at FROM pawl.expiry WHERE expires_at > $1::bigint ORDER BY expires_at LIMIT 1;

-- name: cancel_request_add
-- in:   seq bigint[], wished_at bigint
INSERT INTO pawl.cancel (seq, wished_at) SELECT s, $2::bigint FROM unnest($1::bigint[]) s ON CONFLICT DO NOTHING;

-- name: cancel_request_remove
-- in:   seq bigint[]
DELETE FROM pawl.cancel WHERE seq = ANY ($1::bigint[]);

-- name: cancel_request_list
-- in:   max int
-- out:  seq bigint
-- why:  A result that was stored before the cancel request wins.
SELECT w.seq FROM pawl.cancel w WHERE NOT EXISTS (SELECT 1 FROM pawl.outcome o WHERE o.seq = w.seq)
ORDER BY w.seq LIMIT $1::bigint;

-- name: outcome_add
INSERT INTO pawl.outcome (seq, status, form, result, error, attempts, lost, redrives, key_no, token, node,
                          claimed_at, started_at, finished_at, keep_until)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::text[], $6::bigint[],
                     $7::bigint[], $8::bigint[], $9::bigint[], $10::bytea[], $11::text[], $12::bigint[],
                     $13::bigint[], $14::bigint[], $15::bigint[]);

-- name: outcome_remove
-- in:   seq bigint[]
DELETE FROM pawl.outcome WHERE seq = ANY ($1::bigint[]);

-- name: outcome_keep
-- in:   seq bigint[], keep_until bigint[]
UPDATE pawl.outcome o SET keep_until = v.keep_until
FROM unnest($1::bigint[], $2::bigint[]) v (seq, keep_until) WHERE o.seq = v.seq;

-- name: outcome_kept
-- in:   now bigint, max int
-- out:  seq bigint
-- why:  What a function in SQL has marked is removed as it says (removal_take).
SELECT seq FROM pawl.outcome o WHERE keep_until <= $1::bigint
  AND NOT EXISTS (SELECT 1 FROM pawl.removal r WHERE r.seq = o.seq)
ORDER BY keep_until, seq LIMIT $2::bigint FOR UPDATE SKIP LOCKED;

-- name: outcome_due
SELECT 1 FROM pawl.outcome o WHERE keep_until <= $1::bigint
  AND NOT EXISTS (SELECT 1 FROM pawl.removal r WHERE r.seq = o.seq) LIMIT 1;

-- name: removal_take
-- in:   max int
-- out:  seq bigint, archive int, remember bigint, stands int: the outcome that is meant is still there
SELECT r.seq, r.archive::int::bigint, r.remember,
       (o.finished_at IS NOT DISTINCT FROM r.finished_at AND o.keep_until < 9223372036854775807)::int::bigint
FROM pawl.removal r LEFT JOIN pawl.outcome o ON o.seq = r.seq
ORDER BY r.seq LIMIT $1::bigint FOR UPDATE OF r SKIP LOCKED;

-- name: removal_remove
-- in:   seq bigint[]
DELETE FROM pawl.removal WHERE seq = ANY ($1::bigint[]);

-- name: removal_any
-- why:  SKIP LOCKED: a long transaction that marks again must not keep gc from coming to its end.
SELECT 1 FROM pawl.removal LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: attempt_add
-- why:  `no` continues from the highest stored number.
INSERT INTO pawl.attempt (seq, no, try, how, status, error, node, token, started_at, finished_at)
SELECT v.seq, v.no + coalesce((SELECT max(a.no) FROM pawl.attempt a WHERE a.seq = v.seq), 0), v.try, v.how,
       v.status, v.error, v.node, v.token, v.started_at, v.finished_at
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[],
            $8::bytea[], $9::bigint[], $10::bigint[])
     v (seq, no, try, how, status, error, node, token, started_at, finished_at);

-- name: attempt_of_token
-- in:   seq bigint, token bytea
-- out:  status int, error text, finished_at bigint
-- why:  The owner's newest row.
SELECT status, error, finished_at FROM pawl.attempt WHERE seq = $1::bigint AND token = $2::bytea
ORDER BY no DESC LIMIT 1;

-- name: attempt_error
-- in:   seq bigint
-- out:  error text
SELECT error FROM pawl.attempt WHERE seq = $1::bigint AND how IN (2, 3, 4, 8) ORDER BY no DESC LIMIT 1;

-- name: attempt_list
-- in:   seq bigint, max int
-- out:  try int, how int, error text, node text, started_at bigint, finished_at bigint
SELECT try, how, error, node, started_at, finished_at FROM pawl.attempt
WHERE seq = $1::bigint AND how IN (2, 3, 4, 8) ORDER BY no DESC LIMIT $2::bigint;

-- name: attempt_remove
-- in:   seq bigint[]
DELETE FROM pawl.attempt WHERE seq = ANY ($1::bigint[]);
