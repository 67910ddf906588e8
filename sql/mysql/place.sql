-- The places of calls: ready, key queues (line), expiry, cancel requests, outcomes, attempts.

-- name: ready_add
INSERT INTO pawl_ready into(seq = $1, track = $2, `rank` = $3, run_at = $4, attempts = $5, lost = $6, redrives = $7,
    pos = $8, key_no = $9);

-- name: ready_remove
-- in:   seq bigint[], track int[], rank int[], run_at bigint[]
-- why:  By seq, and only on the track where it was read: a call that has become a flow since stands on another.
DELETE r FROM JSON_TABLE(json($1, $2), '$[*]' COLUMNS (seq BIGINT PATH '$[0]', track BIGINT PATH '$[1]')) v
STRAIGHT_JOIN pawl_ready r FORCE INDEX (PRIMARY) ON r.seq = v.seq AND r.track = v.track;

-- name: ready_pairs
-- out:  track int, rank int, run_at bigint
-- why:  Skips from one used (track, rank) to the next, without reading the other rows of each.
SELECT track, `rank`, MIN(run_at) FROM pawl_ready FORCE INDEX (ready_due) GROUP BY track, `rank`;

-- name: ready_known
-- in:   track int[], rank int[], run_at bigint[], seq bigint[]
-- out:  as ready_pairs
-- why:  Only for known pairs, each from the place where its last claim ended: rows that were claimed before stay in
--       the index for as long as an open snapshot may see them.
each{SELECT track, `rank`, run_at FROM pawl_ready FORCE INDEX (ready_due)
     WHERE track = $1 AND `rank` = $2 AND run_at >= $3 AND (run_at > $3 OR seq >= $4)
     ORDER BY run_at, seq LIMIT 1};

-- name: ready_take
-- in:   track int[], rank int, now bigint, max int, len bigint, run_at bigint[], seq bigint[]: from there on
-- out:  seq bigint, track int, run_at bigint, attempts int, lost int, redrives int, pos bigint, key_no bigint; of the
--       call what line_take has, too
-- why:  Rows that another transaction is claiming are skipped. Inputs are returned as long as all of them together
--       are not longer than len.
uncounted SET @pawl_len = 0;
SELECT r.seq, r.track, r.run_at, r.attempts, r.lost, r.redrives, r.pos, r.key_no,
       c.id, c.method, c.`key`, c.created_at, c.run_at, c.expires_at, c.options, c.caller, c.client,
       c.parent, c.trace, c.tags, c.form, COALESCE(LENGTH(c.input), -1),
       IF((@pawl_len := @pawl_len + COALESCE(LENGTH(c.input), 0)) <= $5, c.input, NULL), c.lane, c.priority, w.wished_at
FROM (each UNION ALL {(SELECT seq, track, run_at, attempts, lost, redrives, pos, key_no
                         FROM pawl_ready FORCE INDEX (ready_due)
                         WHERE track = $1 AND `rank` = $2 AND run_at <= $3 AND run_at >= $6
                           AND (run_at > $6 OR seq >= $7)
                         ORDER BY run_at, seq LIMIT $4 FOR UPDATE SKIP LOCKED)}
      ORDER BY run_at, seq LIMIT $4) r
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = r.seq
LEFT JOIN pawl_cancel w FORCE INDEX (PRIMARY) ON w.seq = r.seq;

-- name: ready_count
-- in:   track int[], rank int[], until bigint, max int
-- out:  track int, n bigint
each{SELECT $1, COUNT(*) FROM (SELECT 1 FROM pawl_ready FORCE INDEX (ready_due)
                               WHERE track = $1 AND `rank` = $2 AND run_at <= $3 LIMIT $4) t};

-- name: line_add
INSERT INTO pawl_line into(`key` = $1, pos = $2, seq = $3, lane = $4, priority = $5, run_at = $6,
    due = IF($2 < 0, $6, NULL), attempts = $7, lost = $8, redrives = $9, key_no = $10);

-- name: line_remove
-- in:   seq bigint[]
DELETE n FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_line n FORCE INDEX (line_seq) ON n.seq = v.seq;

-- name: line_run
-- in:   key text[], max int
-- out:  key text, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no
each{SELECT `key`, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no
     FROM pawl_line FORCE INDEX (PRIMARY) WHERE `key` = $1 AND pos > 0 ORDER BY pos LIMIT $2};

-- name: line_take
-- in:   key text[], max int[], len bigint
-- out:  key text, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no; of the call: id text,
--       method text, key text, created_at bigint, run_at bigint, expires_at bigint, options text, caller text,
--       client text, parent text, trace text, tags text, form int, length bigint (below 0: none), input bytea,
--       lane int, priority int, wished_at bigint
uncounted SET @pawl_len = 0;
each{SELECT n.`key`, n.pos, n.seq, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no,
       c.id, c.method, c.`key`, c.created_at, c.run_at, c.expires_at, c.options, c.caller, c.client,
       c.parent, c.trace, c.tags, c.form, COALESCE(LENGTH(c.input), -1),
       IF((@pawl_len := @pawl_len + COALESCE(LENGTH(c.input), 0)) <= $3, c.input, NULL), c.lane, c.priority, w.wished_at
FROM (SELECT * FROM pawl_line FORCE INDEX (PRIMARY) WHERE `key` = $1 AND pos > 0 ORDER BY pos LIMIT $2) n
STRAIGHT_JOIN pawl_call c FORCE INDEX (PRIMARY) ON c.seq = n.seq
LEFT JOIN pawl_cancel w FORCE INDEX (PRIMARY) ON w.seq = n.seq};

-- name: line_newer
-- in:   key text, pos bigint
-- out:  n bigint
-- why:  From the end: most requests for a position come from a call that has just joined.
SELECT COUNT(*) FROM pawl_line FORCE INDEX (PRIMARY) WHERE `key` = $1 AND pos > $2;

-- name: line_of_key
-- in:   key text, max int
-- out:  seq bigint
-- why:  All calls of the key, also delayed ones.
SELECT seq FROM pawl_line FORCE INDEX (PRIMARY) WHERE `key` = $1 ORDER BY pos LIMIT $2;

-- name: line_due
-- in:   now bigint, max int
-- out:  seq bigint, key text
SELECT seq, `key` FROM pawl_line FORCE INDEX (line_later) WHERE due <= $1 ORDER BY due, seq LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: line_any_due
-- in:   now bigint
SELECT 1 FROM pawl_line FORCE INDEX (line_later) WHERE due <= $1 LIMIT 1;

-- name: claim_look
-- out:  inbox int, hint int: null when there is none; run_at bigint: when the first of the delayed calls joins
-- why:  Everything that a claim must know before it reads ready calls, in one statement; most of the time there is
--       nothing.
SELECT NULL, (SELECT 1 FROM pawl_hint ORDER BY n LIMIT 1),
  (SELECT due FROM pawl_line FORCE INDEX (line_later) WHERE due > 0 ORDER BY due, seq LIMIT 1);

-- name: line_next
-- in:   now bigint
-- out:  run_at bigint
SELECT due FROM pawl_line FORCE INDEX (line_later) WHERE due > $1 ORDER BY due LIMIT 1;

-- name: line_list
-- in:   now bigint, max int
-- out:  lane int, n bigint, due bigint, oldest bigint
SELECT lane, COUNT(*), SUM(run_at <= $1), MIN(run_at)
FROM (SELECT lane, run_at FROM pawl_line LIMIT $2) t GROUP BY lane;

-- name: expiry_add
-- in:   expires_at bigint[], seq bigint[]
INSERT INTO pawl_expiry (expires_at, seq) VALUES rows($1, $2);

-- name: expiry_remove
-- in:   expires_at bigint[], seq bigint[]
DELETE e FROM JSON_TABLE(json($1, $2), '$[*]' COLUMNS (expires_at BIGINT PATH '$[0]', seq BIGINT PATH '$[1]')) v
STRAIGHT_JOIN pawl_expiry e FORCE INDEX (PRIMARY) ON e.expires_at = v.expires_at AND e.seq = v.seq;

-- name: expiry_due
-- in:   now bigint, max int
-- out:  seq bigint
SELECT seq FROM pawl_expiry FORCE INDEX (PRIMARY) WHERE expires_at <= $1 ORDER BY expires_at, seq LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: expiry_any_due
SELECT 1 FROM pawl_expiry FORCE INDEX (PRIMARY) WHERE expires_at <= $1 LIMIT 1;

-- name: expiry_next
-- in:   now bigint
SELECT expires_at FROM pawl_expiry FORCE INDEX (PRIMARY) WHERE expires_at > $1 ORDER BY expires_at LIMIT 1;

-- name: cancel_request_add
-- in:   seq bigint[], wished_at bigint
INSERT IGNORE INTO pawl_cancel (seq, wished_at) VALUES rows($1, $2);

-- name: cancel_request_remove
-- in:   seq bigint[]
each{DELETE FROM pawl_cancel WHERE seq = $1};

-- name: cancel_request_list
-- in:   max int
-- out:  seq bigint
-- why:  A result that was stored before the cancel request wins.
SELECT w.seq FROM pawl_cancel w LEFT JOIN pawl_outcome o FORCE INDEX (PRIMARY) ON o.seq = w.seq WHERE o.seq IS NULL
ORDER BY w.seq LIMIT $1;

-- name: outcome_add
INSERT INTO pawl_outcome into(seq = $1, status = $2, form = $3, result = $4, error = $5, attempts = $6, lost = $7,
    redrives = $8, key_no = $9, token = $10, node = $11, claimed_at = $12, started_at = $13, finished_at = $14,
    keep_until = $15, bad = NULLIF($2, 3));

-- name: outcome_remove
-- in:   seq bigint[]
DELETE o FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_outcome o FORCE INDEX (PRIMARY) ON o.seq = v.seq;

-- name: outcome_keep
-- in:   seq bigint[], keep_until bigint[]
each{UPDATE pawl_outcome SET keep_until = $2 WHERE seq = $1};

-- name: outcome_kept
-- in:   now bigint, max int
-- out:  seq bigint
SELECT seq FROM pawl_outcome FORCE INDEX (outcome_keep) WHERE keep_until <= $1 ORDER BY keep_until, seq LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: outcome_due
SELECT 1 FROM pawl_outcome FORCE INDEX (outcome_keep) WHERE keep_until <= $1 LIMIT 1;

-- name: attempt_add
-- why:  `no` continues from the highest stored number.
INSERT INTO pawl_attempt (seq, no, try, how, status, error, node, token, started_at, finished_at)
SELECT v.seq, v.no + COALESCE((SELECT MAX(a.no) FROM pawl_attempt a WHERE a.seq = v.seq), 0), v.try, v.how,
       v.status, UNHEX(v.error), UNHEX(v.node), UNHEX(v.token), v.started_at, v.finished_at
FROM JSON_TABLE(json($1, $2, $3, $4, $5, $6, $7, $8, $9, $10), '$[*]' COLUMNS (
  seq BIGINT PATH '$[0]', no INT PATH '$[1]', try INT PATH '$[2]', how INT PATH '$[3]', status INT PATH '$[4]',
  error MEDIUMTEXT PATH '$[5]', node VARCHAR(510) PATH '$[6]', token VARCHAR(64) PATH '$[7]',
  started_at BIGINT PATH '$[8]', finished_at BIGINT PATH '$[9]')) v;

-- name: attempt_of_token
-- in:   seq bigint, token bytea
-- out:  status int, error text, finished_at bigint
-- why:  The owner's newest row.
SELECT status, error, finished_at FROM pawl_attempt WHERE seq = $1 AND token = $2 ORDER BY no DESC LIMIT 1;

-- name: attempt_error
-- in:   seq bigint
-- out:  error text
SELECT error FROM pawl_attempt WHERE seq = $1 AND how IN (2, 3, 4, 8) ORDER BY no DESC LIMIT 1;

-- name: attempt_list
-- in:   seq bigint, max int
-- out:  try int, how int, error text, node text, started_at bigint, finished_at bigint
SELECT try, how, error, node, started_at, finished_at FROM pawl_attempt
WHERE seq = $1 AND how IN (2, 3, 4, 8) ORDER BY no DESC LIMIT $2;

-- name: attempt_remove
-- in:   seq bigint[]
each{DELETE FROM pawl_attempt WHERE seq = $1};
