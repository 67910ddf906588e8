-- Workflows: what the feature keeps of calls that take steps. An older program cannot read a call that has begun, so no
-- step is stored before the second half has run.

-- One row a run. rev changes with each operation; generation with each restart, and each retry from a step. flags: 1
-- the last pass was cut off, 2 form and input replace the call's. waits: for what it waits, 1 signals (of these names,
-- a newline between them), 2 children, 4 a time, 8 another try, 16 each child. reason: why it undoes, 1 it failed, 2
-- it was cancelled, 3 its run_timeout passed. compensation: 1 goes on, 2 done, 3 failed. last_done_at rises from step
-- to step. name: its type. shown: 0 not begun, 1 goes on, 2 undoes, 3 completed, 4 failed, 5 cancelled, 6 undone.
-- pass: the token of the last lease that let go of it. wait_at: when what it waits for ends.
CREATE TABLE IF NOT EXISTS pawl_workflow (
  seq          BIGINT NOT NULL,
  rev          BIGINT NOT NULL,
  generation   BIGINT NOT NULL,
  version      VARBINARY(255),
  next_no      BIGINT NOT NULL,
  steps        BIGINT NOT NULL,
  bytes        BIGINT NOT NULL,
  waits        BIGINT NOT NULL,
  wait_signals MEDIUMBLOB,
  deadline     BIGINT,
  next_signal  BIGINT NOT NULL,
  unread       BIGINT NOT NULL,
  flags        BIGINT NOT NULL,
  undoing_at   BIGINT,
  reason       BIGINT NOT NULL,
  error        BLOB,
  compensation BIGINT NOT NULL,
  undone       BIGINT NOT NULL,
  last_done_at BIGINT,
  created_at   BIGINT NOT NULL,
  name         VARBINARY(255) NOT NULL,
  shown        BIGINT NOT NULL,
  pass         VARBINARY(32),
  wait_at      BIGINT,
  form         BIGINT,
  input        MEDIUMBLOB,
  PRIMARY KEY (seq),
  KEY workflow_name (name, seq),
  KEY workflow_shown (shown, seq)
) ENGINE = InnoDB;

-- kind: 1 run, 2 sleep, 3 signal, 4 child, 5 join, 6 select, 7 value, 8 undo. status: 1 begun, 2 waiting, 3 retrying,
-- 4 completed, 5 failed, 6 failed without having happened, 7 timeout. nth: the use of this name. undos: 1 it has one,
-- 2 it was undone, 4 it is a fork's, which never undoes it. awaits: children whose ends settle it.
CREATE TABLE IF NOT EXISTS pawl_step (
  seq          BIGINT NOT NULL,
  no           BIGINT NOT NULL,
  name         VARBINARY(255) NOT NULL,
  nth          BIGINT NOT NULL,
  kind         BIGINT NOT NULL,
  status       BIGINT NOT NULL,
  form         BIGINT NOT NULL,
  result       MEDIUMBLOB,
  error        BLOB,
  attempts     BIGINT NOT NULL,
  undos        BIGINT NOT NULL,
  until_at     BIGINT,
  awaits       BIGINT NOT NULL,
  node         VARBINARY(255),
  started_at   BIGINT NOT NULL,
  completed_at BIGINT,
  PRIMARY KEY (seq, no),
  KEY step_name (seq, name, nth)
) ENGINE = InnoDB;

-- no is the order of arrival; used is the step that consumed it. old_at: when its key need not be known any more, of a
-- consumed signal before the last 1,000 of its run.
CREATE TABLE IF NOT EXISTS pawl_signal (
  seq     BIGINT NOT NULL,
  no      BIGINT NOT NULL,
  name    VARBINARY(255) NOT NULL,
  form    BIGINT NOT NULL,
  value   MEDIUMBLOB,
  idem    VARBINARY(255),
  at      BIGINT NOT NULL,
  used    BIGINT,
  used_at BIGINT,
  old_at  BIGINT,
  PRIMARY KEY (seq, no),
  KEY signal_idem (seq, idem),
  KEY signal_name (seq, name, used, no),
  KEY signal_old (old_at)
) ENGINE = InnoDB;

-- What a run shows while it runs.
CREATE TABLE IF NOT EXISTS pawl_published (
  seq   BIGINT NOT NULL,
  name  VARBINARY(255) NOT NULL,
  form  BIGINT NOT NULL,
  value MEDIUMBLOB,
  at    BIGINT NOT NULL,
  PRIMARY KEY (seq, name)
) ENGINE = InnoDB;

-- A child is kept until all its parents have ended. awaited: the waiting step of the parent; ended: its state. no: the
-- step that made it; 0: it is of the run that was forked, or of before a restart, and the parent never cancels it.
CREATE TABLE IF NOT EXISTS pawl_child (
  parent  BIGINT NOT NULL,
  child   BIGINT NOT NULL,
  id      VARBINARY(255) NOT NULL,
  awaited BIGINT NOT NULL,
  ended   BIGINT NOT NULL,
  no      BIGINT NOT NULL,
  PRIMARY KEY (parent, child),
  KEY child_child (child),
  KEY child_id (parent, id)
) ENGINE = InnoDB;

-- Runs that have begun, and their steps. A result that is no JSON is left out.
CREATE OR REPLACE VIEW pawl_workflow_runs AS
SELECT CONVERT(c.id USING utf8mb4) AS id, CONVERT(w.name USING utf8mb4) AS workflow_name,
       CASE WHEN w.flags & 2 > 0 THEN CASE w.form WHEN 1 THEN CONVERT(w.input USING utf8mb4) END
            ELSE CASE c.form WHEN 1 THEN CONVERT(c.input USING utf8mb4) END END AS input,
       CASE o.form WHEN 1 THEN CONVERT(o.result USING utf8mb4) END AS output,
       CASE w.shown WHEN 1 THEN CASE WHEN w.waits > 0 AND (r.seq IS NOT NULL OR n.seq IS NOT NULL) THEN 'waiting'
                                     ELSE 'running' END
            WHEN 2 THEN 'compensating' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' WHEN 5 THEN 'cancelled'
            WHEN 6 THEN 'compensated' END AS status,
       (SELECT CONVERT(CONCAT(s.name, IF(s.nth > 1, CONCAT('#', s.nth), '')) USING utf8mb4)
        FROM pawl_step s WHERE s.seq = w.seq
        ORDER BY s.no DESC LIMIT 1) AS current_step,
       COALESCE((SELECT JSON_OBJECTAGG(
                  CONVERT(CONCAT(s.name, IF(s.nth > 1, CONCAT('#', s.nth), '')) USING utf8mb4),
                                        JSON_EXTRACT(CONVERT(s.result USING utf8mb4), '$'))
                 FROM pawl_step s WHERE s.seq = w.seq AND s.status = 4 AND s.form = 1), '{}') AS step_results,
       TIMESTAMPADD(MICROSECOND, w.created_at, TIMESTAMP '1970-01-01 00:00:00.000000') AS started_at,
       TIMESTAMPADD(MICROSECOND, o.finished_at, TIMESTAMP '1970-01-01 00:00:00.000000') AS completed_at,
       CONVERT(COALESCE(o.error, w.error) USING utf8mb4) AS error,
       CASE w.compensation WHEN 1 THEN 'compensating' WHEN 2 THEN 'compensated' WHEN 3 THEN 'failed' END
         AS compensation_status,
       CONVERT(SUBSTR(c.trace, 4, 32) USING utf8mb4) AS trace_id,
       CONVERT(w.version USING utf8mb4) AS version
FROM pawl_workflow w
JOIN pawl_call c ON c.seq = w.seq
LEFT JOIN pawl_outcome o ON o.seq = w.seq
LEFT JOIN pawl_ready r ON r.seq = w.seq
LEFT JOIN pawl_line n ON n.seq = w.seq
WHERE w.shown > 0;

CREATE OR REPLACE VIEW pawl_workflow_steps AS
SELECT CONVERT(CONCAT(c.id, '/', s.no) USING utf8mb4) AS id, CONVERT(c.id USING utf8mb4) AS workflow_run_id,
       CONVERT(CONCAT(s.name, IF(s.nth > 1, CONCAT('#', s.nth), '')) USING utf8mb4) AS step_name, s.no,
       CASE s.kind WHEN 1 THEN 'run' WHEN 2 THEN 'sleep' WHEN 3 THEN 'signal' WHEN 4 THEN 'child' WHEN 5 THEN 'join'
                   WHEN 6 THEN 'select' WHEN 7 THEN 'value' WHEN 8 THEN 'undo' END AS kind,
       CASE s.status WHEN 1 THEN 'running' WHEN 2 THEN 'waiting' WHEN 3 THEN 'retrying' WHEN 4 THEN 'completed'
                     WHEN 5 THEN 'failed' WHEN 6 THEN 'failed' WHEN 7 THEN 'timeout' END AS status,
       CASE s.form WHEN 1 THEN CONVERT(s.result USING utf8mb4) END AS result,
       CONVERT(s.error USING utf8mb4) AS error, s.attempts, CONVERT(s.node USING utf8mb4) AS node,
       TIMESTAMPADD(MICROSECOND, s.started_at, TIMESTAMP '1970-01-01 00:00:00.000000') AS started_at,
       TIMESTAMPADD(MICROSECOND, s.completed_at, TIMESTAMP '1970-01-01 00:00:00.000000') AS completed_at
FROM pawl_step s JOIN pawl_call c ON c.seq = s.seq;

-- finish
UPDATE pawl_meta SET value = GREATEST(value, 12) WHERE name = 'min_version';
