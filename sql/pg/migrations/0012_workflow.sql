-- Workflows: what the feature keeps of calls that take steps. An older program cannot read a call that has begun, so no
-- step is stored before the second half has run.

-- One row a run. rev changes with each operation; generation with each restart, and each retry from a step. flags: 1
-- the last pass was cut off, 2 form and input replace the call's. waits: for what it waits, 1 signals (of these names,
-- a newline between them), 2 children, 4 a time, 8 another try, 16 each child. reason: why it undoes, 1 it failed, 2
-- it was cancelled, 3 its run_timeout passed. compensation: 1 goes on, 2 done, 3 failed. last_done_at rises from step
-- to step. name: its type. shown: 0 not begun, 1 goes on, 2 undoes, 3 completed, 4 failed, 5 cancelled, 6 undone.
-- pass: the token of the last lease that let go of it. wait_at: when what it waits for ends.
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
CREATE INDEX workflow_name ON pawl.workflow (name, seq);
CREATE INDEX workflow_shown ON pawl.workflow (shown, seq);

-- kind: 1 run, 2 sleep, 3 signal, 4 child, 5 join, 6 select, 7 value, 8 undo. status: 1 begun, 2 waiting, 3 retrying,
-- 4 completed, 5 failed, 6 failed without having happened, 7 timeout. nth: the use of this name. undos: 1 it has one,
-- 2 it was undone, 4 it is a fork's, which never undoes it. awaits: children whose ends settle it.
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

-- no is the order of arrival; used is the step that consumed it. old_at: when its key need not be known any more, of a
-- consumed signal before the last 1,000 of its run.
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
  old_at  bigint,
  PRIMARY KEY (seq, no)
);
CREATE INDEX signal_idem ON pawl.signal (seq, idem) WHERE idem IS NOT NULL;
CREATE INDEX signal_name ON pawl.signal (seq, name, used, no);
CREATE INDEX signal_old ON pawl.signal (old_at) WHERE old_at IS NOT NULL;

-- What a run shows while it runs.
CREATE TABLE pawl.published (
  seq   bigint NOT NULL,
  name  text COLLATE "C" NOT NULL,
  form  bigint NOT NULL,
  value bytea,
  at    bigint NOT NULL,
  PRIMARY KEY (seq, name)
);

-- A child is kept until all its parents have ended. awaited: the waiting step of the parent; ended: its state. no: the
-- step that made it; 0: it is of the run that was forked, or of before a restart, and the parent never cancels it.
CREATE TABLE pawl.child (
  parent  bigint NOT NULL,
  child   bigint NOT NULL,
  id      text COLLATE "C" NOT NULL,
  awaited bigint NOT NULL,
  ended   bigint NOT NULL,
  no      bigint NOT NULL,
  PRIMARY KEY (parent, child)
) WITH (fillfactor = 70);
CREATE INDEX child_child ON pawl.child (child);
CREATE INDEX child_id ON pawl.child (parent, id);

-- Runs that have begun, and their steps. A result that is no JSON is left out.
CREATE VIEW pawl.workflow_runs AS
SELECT c.id, w.name AS workflow_name,
       CASE WHEN w.flags & 2 > 0 THEN CASE w.form WHEN 1 THEN convert_from(w.input, 'UTF8') END
            ELSE CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END END AS input,
       CASE o.form WHEN 1 THEN convert_from(o.result, 'UTF8') END AS output,
       CASE w.shown WHEN 1 THEN CASE WHEN w.waits > 0 AND (r.seq IS NOT NULL OR n.seq IS NOT NULL) THEN 'waiting'
                                     ELSE 'running' END
            WHEN 2 THEN 'compensating' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' WHEN 5 THEN 'cancelled'
            WHEN 6 THEN 'compensated' END AS status,
       (SELECT s.name || CASE WHEN s.nth > 1 THEN '#' || s.nth ELSE '' END FROM pawl.step s WHERE s.seq = w.seq
        ORDER BY s.no DESC LIMIT 1) AS current_step,
       coalesce((SELECT json_object_agg(s.name || CASE WHEN s.nth > 1 THEN '#' || s.nth ELSE '' END,
                                        convert_from(s.result, 'UTF8')::json ORDER BY s.no)
                 FROM pawl.step s WHERE s.seq = w.seq AND s.status = 4 AND s.form = 1), '{}') AS step_results,
       pawl.moment(w.created_at) AS started_at, pawl.moment(o.finished_at) AS completed_at,
       coalesce(o.error, w.error) AS error,
       CASE w.compensation WHEN 1 THEN 'compensating' WHEN 2 THEN 'compensated' WHEN 3 THEN 'failed' END
         AS compensation_status,
       substr(c.trace, 4, 32) AS trace_id, w.version
FROM pawl.workflow w
JOIN pawl.call c ON c.seq = w.seq
LEFT JOIN pawl.outcome o ON o.seq = w.seq
LEFT JOIN pawl.ready r ON r.seq = w.seq
LEFT JOIN pawl.line n ON n.seq = w.seq
WHERE w.shown > 0;

CREATE VIEW pawl.workflow_steps AS
SELECT c.id || '/' || s.no AS id, c.id AS workflow_run_id,
       s.name || CASE WHEN s.nth > 1 THEN '#' || s.nth ELSE '' END AS step_name, s.no,
       CASE s.kind WHEN 1 THEN 'run' WHEN 2 THEN 'sleep' WHEN 3 THEN 'signal' WHEN 4 THEN 'child' WHEN 5 THEN 'join'
                   WHEN 6 THEN 'select' WHEN 7 THEN 'value' WHEN 8 THEN 'undo' END AS kind,
       CASE s.status WHEN 1 THEN 'running' WHEN 2 THEN 'waiting' WHEN 3 THEN 'retrying' WHEN 4 THEN 'completed'
                     WHEN 5 THEN 'failed' WHEN 6 THEN 'failed' WHEN 7 THEN 'timeout' END AS status,
       CASE s.form WHEN 1 THEN convert_from(s.result, 'UTF8') END AS result, s.error, s.attempts, s.node,
       pawl.moment(s.started_at) AS started_at, pawl.moment(s.completed_at) AS completed_at
FROM pawl.step s JOIN pawl.call c ON c.seq = s.seq;

-- Signal a run, if and only if the transaction around it commits. A node takes it over; what is refused is in
-- inbox_conflicts. A role that does not run nodes signals runs that it submitted.
CREATE FUNCTION pawl.signal(id text, name text, value json DEFAULT 'null') RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  body text := coalesce(signal.value::text, 'null');
BEGIN
  IF signal.id IS NULL OR signal.name IS NULL THEN
    PERFORM pawl.refuse(CASE WHEN signal.id IS NULL THEN 'id' ELSE 'name' END::text, 'is missing'::text);
  ELSIF octet_length(body) > 1048576 THEN
    RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
      MESSAGE = format('field "value": is %s bytes, limit 1048576', octet_length(body));
  ELSIF NOT EXISTS (SELECT FROM pawl.migration m WHERE m.number = 12 AND m.finished <> 0) THEN
    RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE =
      'workflows: every node must run this version first: run pawl migrate finish';
  END IF;
  PERFORM pawl.check_name('id'::text, signal.id);
  PERFORM pawl.check_name('name'::text, signal.name);
  INSERT INTO pawl.inbox (kind, id, type, method, queue, form, input, priority, created_at, client)
  VALUES ('workflow', signal.id, 'pawl.signal', 'signal', 'default', 1,
          convert_to(json_build_object('name', signal.name, 'value', body::json)::text, 'UTF8'), 0,
          round(extract(epoch FROM clock_timestamp()) * 1000000),
          CASE WHEN NOT has_table_privilege(session_user, 'pawl.inbox', 'INSERT') THEN session_user END);
END $$;
REVOKE ALL ON FUNCTION pawl.signal FROM PUBLIC;
-- finish
UPDATE pawl.meta SET value = greatest(value, 12) WHERE name = 'min_version';
