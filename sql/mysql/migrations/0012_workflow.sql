-- Workflows: what the feature keeps of calls that take steps. An older program cannot read a call that has begun, so no
-- step is stored before the second half has run.

-- One row a run. rev changes with each operation; generation with each restart, and each retry from a step. flags: 1 the
-- last pass was cut off, 2 form and input replace the call's. waits: for what it waits, 1 signals (of these names, a
-- newline between them), 2 children, 4 a time, 8 another try, 16 each child. reason: why it undoes, 1 it failed, 2 it was cancelled,
-- 3 its run_timeout passed. compensation: 1 goes on, 2 done, 3 failed. last_done_at rises from step to step. name: its
-- type. shown: 0 not begun, 1 goes on, 2 undoes, 3 completed, 4 failed, 5 cancelled, 6 undone. pass: the token of the
-- last lease that let go of it. wait_at: when what it waits for ends.
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
  KEY workflow_deadline (deadline),
  KEY workflow_name (name, seq),
  KEY workflow_shown (shown, seq)
) ENGINE = InnoDB;

-- kind: 1 run, 2 sleep, 3 signal, 4 child, 5 join, 6 select, 7 value, 8 undo. status: 1 begun, 2 waiting, 3 retrying,
-- 4 completed, 5 failed, 6 failed without having happened, 7 timeout. nth: the use of this name. undos: 1 it has one,
-- 2 it was undone. awaits: children whose ends settle it.
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

-- no is the order of arrival; used is the step that consumed it.
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
  PRIMARY KEY (seq, no),
  KEY signal_idem (seq, idem),
  KEY signal_name (seq, name, used, no),
  KEY signal_used (used_at)
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

-- A child is kept until all its parents have ended. awaited: the waiting step of the parent; ended: its state.
CREATE TABLE IF NOT EXISTS pawl_child (
  parent  BIGINT NOT NULL,
  child   BIGINT NOT NULL,
  id      VARBINARY(255) NOT NULL,
  awaited BIGINT NOT NULL,
  ended   BIGINT NOT NULL,
  PRIMARY KEY (parent, child),
  KEY child_child (child),
  KEY child_id (parent, id)
) ENGINE = InnoDB;

-- finish
UPDATE pawl_meta SET value = GREATEST(value, 12) WHERE name = 'min_version';
