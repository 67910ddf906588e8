-- Workflows: what the feature keeps of calls that take steps. An older program cannot read a call that has begun, so no
-- step is stored before the second half has run.

-- One row a run. rev changes with each operation; generation with each restart, and each retry from a step. flags: 1 the
-- last pass was cut off, 2 form and input replace the call's. waits: for what it waits, 1 signals (of these names, a
-- newline between them), 2 children, 4 a time, 8 another try, 16 each child. reason: why it undoes, 1 it failed, 2 it was cancelled,
-- 3 its run_timeout passed. compensation: 1 goes on, 2 done, 3 failed. last_done_at rises from step to step. name: its
-- type. shown: 0 not begun, 1 goes on, 2 undoes, 3 completed, 4 failed, 5 cancelled, 6 undone. pass: the token of the
-- last lease that let go of it. wait_at: when what it waits for ends.
CREATE TABLE pawl.workflow (
  seq          bigint NOT NULL,
  rev          bigint NOT NULL,
  generation   bigint NOT NULL,
  version      text COLLATE "C",
  next_no      bigint NOT NULL,
  steps        bigint NOT NULL,
  bytes        bigint NOT NULL,
  waits        bigint NOT NULL,
  wait_signals text COLLATE "C",
  deadline     bigint,
  next_signal  bigint NOT NULL,
  unread       bigint NOT NULL,
  flags        bigint NOT NULL,
  undoing_at   bigint,
  reason       bigint NOT NULL,
  error        text COLLATE "C",
  compensation bigint NOT NULL,
  undone       bigint NOT NULL,
  last_done_at bigint,
  created_at   bigint NOT NULL,
  name         text COLLATE "C" NOT NULL,
  shown        bigint NOT NULL,
  pass         text COLLATE "C",
  wait_at      bigint,
  form         bigint,
  input        bytea,
  PRIMARY KEY (seq)
) WITH (fillfactor = 70);
CREATE INDEX workflow_deadline ON pawl.workflow (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX workflow_name ON pawl.workflow (name, seq);
CREATE INDEX workflow_shown ON pawl.workflow (shown, seq);

-- kind: 1 run, 2 sleep, 3 signal, 4 child, 5 join, 6 select, 7 value, 8 undo. status: 1 begun, 2 waiting, 3 retrying,
-- 4 completed, 5 failed, 6 failed without having happened, 7 timeout. nth: the use of this name. undos: 1 it has one,
-- 2 it was undone. awaits: children whose ends settle it.
CREATE TABLE pawl.step (
  seq          bigint NOT NULL,
  no           bigint NOT NULL,
  name         text COLLATE "C" NOT NULL,
  nth          bigint NOT NULL,
  kind         bigint NOT NULL,
  status       bigint NOT NULL,
  form         bigint NOT NULL,
  result       bytea,
  error        text COLLATE "C",
  attempts     bigint NOT NULL,
  undos        bigint NOT NULL,
  until_at     bigint,
  awaits       bigint NOT NULL,
  node         text COLLATE "C",
  started_at   bigint NOT NULL,
  completed_at bigint,
  PRIMARY KEY (seq, no)
) WITH (fillfactor = 70);
CREATE INDEX step_name ON pawl.step (seq, name, nth);

-- no is the order of arrival; used is the step that consumed it.
CREATE TABLE pawl.signal (
  seq     bigint NOT NULL,
  no      bigint NOT NULL,
  name    text COLLATE "C" NOT NULL,
  form    bigint NOT NULL,
  value   bytea,
  idem    text COLLATE "C",
  at      bigint NOT NULL,
  used    bigint,
  used_at bigint,
  PRIMARY KEY (seq, no)
);
CREATE INDEX signal_idem ON pawl.signal (seq, idem) WHERE idem IS NOT NULL;
CREATE INDEX signal_name ON pawl.signal (seq, name, used, no);
CREATE INDEX signal_used ON pawl.signal (used_at) WHERE used_at IS NOT NULL;

-- What a run shows while it runs.
CREATE TABLE pawl.published (
  seq   bigint NOT NULL,
  name  text COLLATE "C" NOT NULL,
  form  bigint NOT NULL,
  value bytea,
  at    bigint NOT NULL,
  PRIMARY KEY (seq, name)
);

-- A child is kept until all its parents have ended. awaited: the waiting step of the parent; ended: its state.
CREATE TABLE pawl.child (
  parent  bigint NOT NULL,
  child   bigint NOT NULL,
  id      text COLLATE "C" NOT NULL,
  awaited bigint NOT NULL,
  ended   bigint NOT NULL,
  PRIMARY KEY (parent, child)
) WITH (fillfactor = 70);
CREATE INDEX child_child ON pawl.child (child);
CREATE INDEX child_id ON pawl.child (parent, id);

-- finish
UPDATE pawl.meta SET value = greatest(value, 12) WHERE name = 'min_version';
