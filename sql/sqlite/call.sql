-- What was asked. The first 16 columns of call_claim and call_read are the same, in this order, so that one
-- function reads both.

-- name: call_add
-- in:   seq bigint, id text, lane int, method text, key text, form int, input bytea, priority int,
--       created_at bigint, run_at bigint, expires_at bigint, options text, caller text, client text,
--       parent text, trace text, tags text
INSERT INTO pawl_call (seq, id, lane, method, key, form, input, priority, created_at, run_at, expires_at,
                       options, caller, client, parent, trace, tags)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17);

-- name: call_claim
-- in:   seq bigint, with_input int
-- out:  id, lane, method, key, form, input, priority, created_at, run_at, expires_at, options, caller, client,
--       parent, trace, tags
-- why:  A column that is named is read, and a large input lies on pages of its own: CASE leaves them alone.
SELECT id, lane, method, key, form, CASE WHEN ?2 THEN input END, priority, created_at, run_at, expires_at,
       options, caller, client, parent, trace, tags
FROM pawl_call WHERE seq = ?1;

-- name: call_from
-- in:   seq bigint
-- out:  the 16 of call_claim with the input, seq bigint
-- why:  A claim of neighbours walks along the table instead of coming down to it for each of them.
SELECT id, lane, method, key, form, input, priority, created_at, run_at, expires_at, options, caller, client,
       parent, trace, tags, seq
FROM pawl_call WHERE seq >= ?1 ORDER BY seq;

-- name: call_read
-- in:   seq bigint, with_input int, with_result int
-- out:  the 16 of call_claim; of ready: track, rank, run_at, attempts, lost, redrives; of the outcome: status,
--       form, result, error, attempts, lost, redrives, node, claimed_at, started_at, finished_at, keep_until,
--       token, key_no; of the line: pos, lane, priority, run_at, attempts, lost, redrives, key_no
-- why:  All places in one statement: a reader that sees a call in two of them, or in none, says so.
SELECT c.id, c.lane, c.method, c.key, c.form, CASE WHEN ?2 THEN c.input END, c.priority, c.created_at, c.run_at,
       c.expires_at, c.options, c.caller, c.client, c.parent, c.trace, c.tags,
       r.track, r.rank, r.run_at, r.attempts, r.lost, r.redrives,
       o.status, o.form, CASE WHEN ?3 THEN o.result END, o.error, o.attempts, o.lost, o.redrives, o.node,
       o.claimed_at, o.started_at, o.finished_at, o.keep_until, o.token, o.key_no,
       n.pos, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no
FROM pawl_call c
LEFT JOIN pawl_ready r ON r.seq = c.seq
LEFT JOIN pawl_outcome o ON o.seq = c.seq
LEFT JOIN pawl_line n ON n.seq = c.seq AND c.key IS NOT NULL
WHERE c.seq = ?1;

-- name: call_move
-- in:   seq bigint, lane int, priority int, run_at bigint
-- why:  The one update of the ledger: a moved call shows for good what it was moved to.
UPDATE pawl_call SET lane = ?2, priority = ?3, run_at = ?4 WHERE seq = ?1;

-- name: call_remove
-- in:   seq bigint
DELETE FROM pawl_call WHERE seq = ?1;

-- name: call_below
-- in:   below bigint
-- out:  seq bigint, created_at bigint
-- why:  One probe of the search for a time: created_at rises with seq, and seqs have gaps.
SELECT seq, created_at FROM pawl_call WHERE seq < ?1 ORDER BY seq DESC LIMIT 1;

-- name: call_list
-- in:   below bigint
-- out:  seq bigint
SELECT seq FROM pawl_call WHERE seq < ?1 ORDER BY seq DESC;

-- name: call_list_lane
-- in:   lane int, below bigint
-- out:  seq bigint
SELECT seq FROM pawl_call INDEXED BY pawl_call_lane WHERE lane = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT 1;

-- name: call_list_key
-- in:   key text, below bigint
-- out:  seq bigint
SELECT seq FROM pawl_call INDEXED BY pawl_call_key WHERE key = ?1 AND seq < ?2 ORDER BY seq DESC;

-- name: call_list_parent
-- in:   parent text, below bigint
-- out:  seq bigint
SELECT seq FROM pawl_call INDEXED BY pawl_call_parent WHERE parent = ?1 AND seq < ?2 ORDER BY seq DESC;

-- name: call_list_caller
-- in:   caller text, below bigint
-- out:  seq bigint
SELECT seq FROM pawl_call INDEXED BY pawl_call_caller WHERE caller = ?1 AND seq < ?2 ORDER BY seq DESC;

-- name: call_list_client
-- in:   client text, below bigint
-- out:  seq bigint
SELECT seq FROM pawl_call INDEXED BY pawl_call_client WHERE client = ?1 AND seq < ?2 ORDER BY seq DESC;
