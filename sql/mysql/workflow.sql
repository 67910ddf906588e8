-- Workflows: statements that find many rows, as one with a join in the order written; each{...} would be a statement a
-- row. What they do is said in sql/all/workflow.sql.

-- name: workflow_lock
SELECT w.seq, w.rev, w.generation, w.version, w.next_no, w.steps, w.bytes, w.waits, w.wait_signals, w.deadline,
       w.next_signal, w.unread, w.flags, w.undoing_at, w.reason, w.error, w.compensation, w.undone, w.last_done_at,
       w.created_at, w.name, w.shown, w.pass, w.wait_at
FROM JSON_TABLE(json($1), '$[*]' COLUMNS (seq BIGINT PATH '$')) v
STRAIGHT_JOIN pawl_workflow w FORCE INDEX (PRIMARY) ON w.seq = v.seq FOR UPDATE;

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
