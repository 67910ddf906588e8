-- Workflows: what the feature keeps of calls that take steps. An older program cannot read a call that has begun, so no
-- step is stored before the second half has run.

-- One row a run. rev changes with each operation; generation with each restart, and each retry from a step. flags: 1
-- the last pass was cut off, 2 form and input replace the call's. waits: for what it waits, 1 signals (of these names,
-- a newline between them), 2 children, 4 a time, 8 another try, 16 each child. reason: why it undoes, 1 it failed, 2
-- it was cancelled, 3 its run_timeout passed. compensation: 1 goes on, 2 done, 3 failed. last_done_at rises from step
-- to step. name: its type. shown: 0 not begun, 1 goes on, 2 undoes, 3 completed, 4 failed, 5 cancelled, 6 undone.
-- pass: the token of the last lease that let go of it. wait_at: when what it waits for ends.
CREATE TABLE pawl_workflow (
  seq          INTEGER NOT NULL,
  rev          INTEGER NOT NULL,
  generation   INTEGER NOT NULL,
  version      TEXT,
  next_no      INTEGER NOT NULL,
  steps        INTEGER NOT NULL,
  bytes        INTEGER NOT NULL,
  waits        INTEGER NOT NULL,
  wait_signals TEXT,
  deadline     INTEGER,
  next_signal  INTEGER NOT NULL,
  unread       INTEGER NOT NULL,
  flags        INTEGER NOT NULL,
  undoing_at   INTEGER,
  reason       INTEGER NOT NULL,
  error        TEXT,
  compensation INTEGER NOT NULL,
  undone       INTEGER NOT NULL,
  last_done_at INTEGER,
  created_at   INTEGER NOT NULL,
  name         TEXT NOT NULL,
  shown        INTEGER NOT NULL,
  pass         TEXT,
  wait_at      INTEGER,
  form         INTEGER,
  input        BLOB,
  PRIMARY KEY (seq)
);
CREATE INDEX pawl_workflow_name ON pawl_workflow (name, seq);
CREATE INDEX pawl_workflow_shown ON pawl_workflow (shown, seq);

-- kind: 1 run, 2 sleep, 3 signal, 4 child, 5 join, 6 select, 7 value, 8 undo. status: 1 begun, 2 waiting, 3 retrying,
-- 4 completed, 5 failed, 6 failed without having happened, 7 timeout. nth: the use of this name. undos: 1 it has one,
-- 2 it was undone, 4 it is a fork's, which never undoes it. awaits: children whose ends settle it.
CREATE TABLE pawl_step (
  seq          INTEGER NOT NULL,
  no           INTEGER NOT NULL,
  name         TEXT NOT NULL,
  nth          INTEGER NOT NULL,
  kind         INTEGER NOT NULL,
  status       INTEGER NOT NULL,
  form         INTEGER NOT NULL,
  result       BLOB,
  error        TEXT,
  attempts     INTEGER NOT NULL,
  undos        INTEGER NOT NULL,
  until_at     INTEGER,
  awaits       INTEGER NOT NULL,
  node         TEXT,
  started_at   INTEGER NOT NULL,
  completed_at INTEGER,
  PRIMARY KEY (seq, no)
);
CREATE INDEX pawl_step_name ON pawl_step (seq, name, nth);

-- no is the order of arrival; used is the step that consumed it. old_at: when its key need not be known any more, of a
-- consumed signal before the last 1,000 of its run.
CREATE TABLE pawl_signal (
  seq     INTEGER NOT NULL,
  no      INTEGER NOT NULL,
  name    TEXT NOT NULL,
  form    INTEGER NOT NULL,
  value   BLOB,
  idem    TEXT,
  at      INTEGER NOT NULL,
  used    INTEGER,
  used_at INTEGER,
  old_at  INTEGER,
  PRIMARY KEY (seq, no)
);
CREATE INDEX pawl_signal_idem ON pawl_signal (seq, idem) WHERE idem IS NOT NULL;
CREATE INDEX pawl_signal_name ON pawl_signal (seq, name, used, no);
CREATE INDEX pawl_signal_old ON pawl_signal (old_at) WHERE old_at IS NOT NULL;

-- What a run shows while it runs.
CREATE TABLE pawl_published (
  seq   INTEGER NOT NULL,
  name  TEXT NOT NULL,
  form  INTEGER NOT NULL,
  value BLOB,
  at    INTEGER NOT NULL,
  PRIMARY KEY (seq, name)
);

-- A child is kept until all its parents have ended. awaited: the waiting step of the parent; ended: its state. no: the
-- step that made it; 0: it is of the run that was forked, or of before a restart, and the parent never cancels it.
CREATE TABLE pawl_child (
  parent  INTEGER NOT NULL,
  child   INTEGER NOT NULL,
  id      TEXT NOT NULL,
  awaited INTEGER NOT NULL,
  ended   INTEGER NOT NULL,
  no      INTEGER NOT NULL,
  PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX pawl_child_child ON pawl_child (child);
CREATE INDEX pawl_child_id ON pawl_child (parent, id);

-- Runs that have begun, and their steps. A result that is no JSON is left out.
CREATE VIEW pawl_workflow_runs AS
SELECT c.id, w.name AS workflow_name,
       CASE WHEN w.flags & 2 > 0 THEN CASE w.form WHEN 1 THEN CAST(w.input AS TEXT) END
            ELSE CASE c.form WHEN 1 THEN CAST(c.input AS TEXT) END END AS input,
       CASE o.form WHEN 1 THEN CAST(o.result AS TEXT) END AS output,
       CASE w.shown WHEN 1 THEN CASE WHEN w.waits > 0 AND (r.seq IS NOT NULL OR n.seq IS NOT NULL) THEN 'waiting'
                                     ELSE 'running' END
            WHEN 2 THEN 'compensating' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' WHEN 5 THEN 'cancelled'
            WHEN 6 THEN 'compensated' END AS status,
       (SELECT s.name || CASE WHEN s.nth > 1 THEN '#' || s.nth ELSE '' END FROM pawl_step s WHERE s.seq = w.seq
        ORDER BY s.no DESC LIMIT 1) AS current_step,
       coalesce((SELECT json_group_object(s.name || CASE WHEN s.nth > 1 THEN '#' || s.nth ELSE '' END,
                                        json(CAST(s.result AS TEXT)))
                 FROM pawl_step s WHERE s.seq = w.seq AND s.status = 4 AND s.form = 1), '{}') AS step_results,
       strftime('%Y-%m-%dT%H:%M:%S', w.created_at / 1000000, 'unixepoch') ||
         printf('.%06dZ', w.created_at % 1000000) AS started_at,
       strftime('%Y-%m-%dT%H:%M:%S', o.finished_at / 1000000, 'unixepoch') ||
         printf('.%06dZ', o.finished_at % 1000000) AS completed_at,
       coalesce(o.error, w.error) AS error,
       CASE w.compensation WHEN 1 THEN 'compensating' WHEN 2 THEN 'compensated' WHEN 3 THEN 'failed' END
         AS compensation_status,
       substr(c.trace, 4, 32) AS trace_id, w.version
FROM pawl_workflow w
JOIN pawl_call c ON c.seq = w.seq
LEFT JOIN pawl_outcome o ON o.seq = w.seq
LEFT JOIN pawl_ready r ON r.seq = w.seq
LEFT JOIN pawl_line n ON n.seq = w.seq
WHERE w.shown > 0;

CREATE VIEW pawl_workflow_steps AS
SELECT c.id || '/' || s.no AS id, c.id AS workflow_run_id,
       s.name || CASE WHEN s.nth > 1 THEN '#' || s.nth ELSE '' END AS step_name, s.no,
       CASE s.kind WHEN 1 THEN 'run' WHEN 2 THEN 'sleep' WHEN 3 THEN 'signal' WHEN 4 THEN 'child' WHEN 5 THEN 'join'
                   WHEN 6 THEN 'select' WHEN 7 THEN 'value' WHEN 8 THEN 'undo' END AS kind,
       CASE s.status WHEN 1 THEN 'running' WHEN 2 THEN 'waiting' WHEN 3 THEN 'retrying' WHEN 4 THEN 'completed'
                     WHEN 5 THEN 'failed' WHEN 6 THEN 'failed' WHEN 7 THEN 'timeout' END AS status,
       CASE s.form WHEN 1 THEN CAST(s.result AS TEXT) END AS result, s.error, s.attempts, s.node,
       strftime('%Y-%m-%dT%H:%M:%S', s.started_at / 1000000, 'unixepoch') ||
         printf('.%06dZ', s.started_at % 1000000) AS started_at,
       strftime('%Y-%m-%dT%H:%M:%S', s.completed_at / 1000000, 'unixepoch') ||
         printf('.%06dZ', s.completed_at % 1000000) AS completed_at
FROM pawl_step s JOIN pawl_call c ON c.seq = s.seq;

-- finish
UPDATE pawl_meta SET value = max(value, 12) WHERE name = 'min_version';
