-- Workflows: statements that find many rows, as one with a join in the order written; each{...} would be a statement a
-- row. What they do is said in sql/all/workflow.sql.

-- name: workflow_lock
SELECT w.seq, w.rev, w.generation, w.version, w.next_no, w.steps, w.bytes, w.waits, w.wait_signals, w.deadline,
       w.next_signal, w.unread, w.flags, w.undoing_at, w.reason, w.error, w.compensation, w.undone, w.last_done_at,
       w.created_at, w.name, w.shown, w.pass, w.wait_at
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_workflow w FORCE INDEX (PRIMARY) ON w.seq = v.seq FOR UPDATE;

-- name: workflow_put
-- why:  One statement for all rows, which costs a third of one each. It inserts nothing, because the rows exist and are
--       locked; a row that did not would be counted once instead of twice, and the group would end as BROKEN.
twice INSERT INTO pawl_workflow (seq, rev, generation, version, next_no, steps, bytes, waits, wait_signals, deadline,
       next_signal, unread, flags, undoing_at, reason, error, compensation, undone, last_done_at, shown, pass, wait_at,
       created_at, name)
VALUES rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, 0, '')
ON DUPLICATE KEY UPDATE rev = VALUES(rev), generation = VALUES(generation), version = VALUES(version),
  next_no = VALUES(next_no), steps = VALUES(steps), bytes = VALUES(bytes), waits = VALUES(waits),
  wait_signals = VALUES(wait_signals), deadline = VALUES(deadline), next_signal = VALUES(next_signal),
  unread = VALUES(unread), flags = VALUES(flags), undoing_at = VALUES(undoing_at), reason = VALUES(reason),
  error = VALUES(error), compensation = VALUES(compensation), undone = VALUES(undone),
  last_done_at = VALUES(last_done_at), shown = VALUES(shown), pass = VALUES(pass), wait_at = VALUES(wait_at);

-- name: step_find
SELECT s.seq, s.no, s.name, s.nth, s.kind, s.status, s.form, s.result, s.error, s.attempts, s.undos, s.until_at,
       s.awaits, s.node, s.started_at, s.completed_at
FROM JSON_TABLE(json($1, $2), '$[*]' COLUMNS (seq BIGINT PATH '$[0]', no BIGINT PATH '$[1]')) v
STRAIGHT_JOIN pawl_step s FORCE INDEX (PRIMARY) ON s.seq = v.seq AND s.no = v.no;

-- name: step_uses
-- why:  A name that was not used is a row, too, without nth.
SELECT v.seq, UNHEX(v.name),
       (SELECT s.nth FROM pawl_step s FORCE INDEX (step_name) WHERE s.seq = v.seq AND s.name = UNHEX(v.name)
        ORDER BY s.nth DESC LIMIT 1), NULL
FROM JSON_TABLE(json($1, $2), '$[*]' COLUMNS (seq BIGINT PATH '$[0]', name VARCHAR(510) PATH '$[1]')) v;

-- name: child_named
SELECT c.parent, c.child, c.id, c.awaited, c.ended
FROM JSON_TABLE(json($1, $2), '$[*]' COLUMNS (parent BIGINT PATH '$[0]', id VARCHAR(510) PATH '$[1]')) v
STRAIGHT_JOIN pawl_child c FORCE INDEX (child_id) ON c.parent = v.parent AND c.id = UNHEX(v.id);

-- name: child_parents
SELECT c.parent, c.child, c.id, c.awaited, c.ended
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (child BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_child c FORCE INDEX (child_child) ON c.child = v.child;
