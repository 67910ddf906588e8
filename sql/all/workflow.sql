-- Workflows, their steps, signals, published values and children.

-- name: workflow_lock
-- in:   seq bigint[], sorted
-- out:  seq, rev, generation, version, next_no, steps, bytes, waits, wait_signals, deadline, next_signal, unread,
--       flags,
--       undoing_at, reason, error, compensation, undone, last_done_at, created_at, name, shown, pass, wait_at
-- why:  Only nodes lock these rows, and never for long.
each SELECT seq, rev, generation, version, next_no, steps, bytes, waits, wait_signals, deadline, next_signal, unread,
       flags, undoing_at, reason, error, compensation, undone, last_done_at, created_at, name, shown,
       pass, wait_at
FROM pawl.workflow WHERE seq = $1:int[] FOR UPDATE;

-- name: workflow_read
-- in:   seq bigint[]
-- out:  as workflow_lock, then form, input
each SELECT seq, rev, generation, version, next_no, steps, bytes, waits, wait_signals, deadline, next_signal, unread,
       flags, undoing_at, reason, error, compensation, undone, last_done_at, created_at, name, shown,
       pass, wait_at, form, input
FROM pawl.workflow WHERE seq = $1:int[];

-- name: workflow_journal
-- in:   seq bigint, from no bigint, max bytes bigint, max steps bigint, known rev bigint
-- out:  as workflow_lock, then the columns of step_find but the first: a row for each step, or one whose no is null.
--       Without steps when there may be more than the maxima allow, or when rev is the known one.
-- why:  One statement instead of a transaction, for nearly every journal.
SELECT w.seq, w.rev, w.generation, w.version, w.next_no, w.steps, w.bytes, w.waits, w.wait_signals, w.deadline,
       w.next_signal, w.unread, w.flags, w.undoing_at, w.reason, w.error, w.compensation, w.undone, w.last_done_at,
       w.created_at, w.name, w.shown, w.pass, w.wait_at,
       s.no, s.name, s.nth, s.kind, s.status, s.form, s.result, s.error, s.attempts, s.undos, s.until_at, s.awaits,
       s.node, s.started_at, s.completed_at
FROM pawl.workflow w LEFT JOIN pawl.step s
  ON s.seq = w.seq AND s.no >= $2:int AND w.bytes <= $3:int AND w.next_no <= $2:int + $4:int AND w.rev <> $5:int
WHERE w.seq = $1:int ORDER BY s.no;

-- name: workflow_add
-- why:  A signal and the first step may both make the row: then none is added, and the group is repeated.
INSERT ONCE INTO pawl.workflow (seq, rev, generation, version, next_no, steps, bytes, waits, wait_signals, deadline,
  next_signal, unread, flags, undoing_at, reason, error, compensation, undone, last_done_at, created_at, name, shown,
       pass,
  wait_at)
rows($1:int[], $2:int[], $3:int[], $4:text[], $5:int[], $6:int[], $7:int[], $8:int[], $9:text[], $10:int[], $11:int[],
  $12:int[], $13:int[], $14:int[], $15:int[], $16:text[], $17:int[], $18:int[], $19:int[], $20:int[],
  $21:text[], $22:int[], $23:text[], $24:int[]);

-- name: workflow_put
-- in:   as workflow_add, without created_at and name
each UPDATE pawl.workflow SET rev = $2:int[], generation = $3:int[], version = $4:text[], next_no = $5:int[],
  steps = $6:int[], bytes = $7:int[], waits = $8:int[], wait_signals = $9:text[], deadline = $10:int[],
  next_signal = $11:int[], unread = $12:int[], flags = $13:int[], undoing_at = $14:int[], reason = $15:int[],
  error = $16:text[], compensation = $17:int[], undone = $18:int[], last_done_at = $19:int[],
  shown = $20:int[], pass = $21:text[], wait_at = $22:int[]
WHERE seq = $1:int[];

-- name: workflow_input
-- in:   seq bigint[], form bigint[], input bytea[]
each UPDATE pawl.workflow SET form = $2:int[], input = $3:bytes[] WHERE seq = $1:int[];

-- name: workflow_list
-- in:   before seq bigint, max int
-- out:  as workflow_lock, then id; of runs that have begun, newest first
SELECT w.seq, w.rev, w.generation, w.version, w.next_no, w.steps, w.bytes, w.waits, w.wait_signals, w.deadline,
       w.next_signal, w.unread, w.flags, w.undoing_at, w.reason, w.error, w.compensation, w.undone, w.last_done_at,
       w.created_at, w.name, w.shown, w.pass, w.wait_at, c.id
FROM pawl.workflow w JOIN pawl.call c ON c.seq = w.seq
WHERE w.seq < $1:int AND w.shown > 0 ORDER BY w.seq DESC LIMIT $2:int;

-- name: workflow_list_live
-- in:   before seq bigint, max int
-- out:  as workflow_list; of runs that have not ended, also those that undo
-- why:  Two ranges of the index on shown, each cut at the maximum: one range of seq would read all that have ended.
SELECT * FROM (
  SELECT w.seq, w.rev, w.generation, w.version, w.next_no, w.steps, w.bytes, w.waits, w.wait_signals, w.deadline,
         w.next_signal, w.unread, w.flags, w.undoing_at, w.reason, w.error, w.compensation, w.undone, w.last_done_at,
         w.created_at, w.name, w.shown, w.pass, w.wait_at, c.id
  FROM pawl.workflow w JOIN pawl.call c ON c.seq = w.seq
  WHERE w.seq < $1:int AND w.shown = 1 ORDER BY w.seq DESC LIMIT $2:int) AS goes_on
UNION ALL SELECT * FROM (
  SELECT w.seq, w.rev, w.generation, w.version, w.next_no, w.steps, w.bytes, w.waits, w.wait_signals, w.deadline,
         w.next_signal, w.unread, w.flags, w.undoing_at, w.reason, w.error, w.compensation, w.undone, w.last_done_at,
         w.created_at, w.name, w.shown, w.pass, w.wait_at, c.id
  FROM pawl.workflow w JOIN pawl.call c ON c.seq = w.seq
  WHERE w.seq < $1:int AND w.shown = 2 ORDER BY w.seq DESC LIMIT $2:int) AS undoes
ORDER BY seq DESC LIMIT $2:int;

-- name: workflow_list_name
-- in:   before seq bigint, name text, max int
-- out:  as workflow_lock, then id; of runs that have begun, newest first
SELECT w.seq, w.rev, w.generation, w.version, w.next_no, w.steps, w.bytes, w.waits, w.wait_signals, w.deadline,
       w.next_signal, w.unread, w.flags, w.undoing_at, w.reason, w.error, w.compensation, w.undone, w.last_done_at,
       w.created_at, w.name, w.shown, w.pass, w.wait_at, c.id
FROM pawl.workflow w JOIN pawl.call c ON c.seq = w.seq
WHERE w.seq < $1:int AND w.name = $2:text AND w.shown > 0 ORDER BY w.seq DESC LIMIT $3:int;

-- name: workflow_list_shown
-- in:   before seq bigint, shown bigint, max int
-- out:  as workflow_lock, then id; of runs that have begun, newest first
SELECT w.seq, w.rev, w.generation, w.version, w.next_no, w.steps, w.bytes, w.waits, w.wait_signals, w.deadline,
       w.next_signal, w.unread, w.flags, w.undoing_at, w.reason, w.error, w.compensation, w.undone, w.last_done_at,
       w.created_at, w.name, w.shown, w.pass, w.wait_at, c.id
FROM pawl.workflow w JOIN pawl.call c ON c.seq = w.seq
WHERE w.seq < $1:int AND w.shown = $2:int ORDER BY w.seq DESC LIMIT $3:int;

-- name: workflow_waiting
-- in:   max int
-- out:  queue, waits, how many
-- why:  Counting stops at a maximum: a scrape must not read a million runs. A run that a lease holds goes on, whatever it
--       waited for: that a sleep is over is stored with its next step.
SELECT v.queue, v.waits, count(*) FROM (
  SELECT l.queue, w.waits FROM pawl.workflow w JOIN pawl.call c ON c.seq = w.seq JOIN pawl.lane l ON l.lane = c.lane
  LEFT JOIN pawl.ready r ON r.seq = w.seq LEFT JOIN pawl.line n ON n.seq = w.seq
  WHERE w.shown IN (1, 2) AND w.waits > 0 AND (r.seq IS NOT NULL OR n.seq IS NOT NULL) LIMIT $1:int) v
GROUP BY v.queue, v.waits;

-- name: workflow_open
-- in:   max int
-- out:  how many runs have not ended
SELECT count(*) FROM (SELECT 1 FROM pawl.workflow WHERE shown IN (1, 2) LIMIT $1:int) v;

-- name: workflow_undoing
-- in:   max int
-- out:  seq; of runs that undo
SELECT seq FROM pawl.workflow WHERE shown = 2 ORDER BY seq LIMIT $1:int;

-- name: workflow_remove
-- in:   seq bigint[]
each DELETE FROM pawl.workflow WHERE seq = $1:int[];

-- name: step_find
-- in:   seq bigint[], no bigint[]
-- out:  seq, no, name, nth, kind, status, form, result, error, attempts, undos, until_at, awaits, node, started_at,
--       completed_at
each SELECT seq, no, name, nth, kind, status, form, result, error, attempts, undos, until_at, awaits, node, started_at,
       completed_at
FROM pawl.step WHERE seq = $1:int[] AND no = $2:int[];

-- name: step_named
-- in:   seq bigint[], name text[], nth bigint[]
-- out:  as step_find
each SELECT seq, no, name, nth, kind, status, form, result, error, attempts, undos, until_at, awaits, node, started_at,
       completed_at
FROM pawl.step WHERE seq = $1:int[] AND name = $2:text[] AND nth = $3:int[];

-- name: step_uses
-- in:   seq bigint[], name text[]
-- out:  seq, name, the last nth and its no
each SELECT seq, name, nth, no FROM pawl.step WHERE seq = $1:int[] AND name = $2:text[] ORDER BY nth DESC LIMIT 1;

-- name: step_open
-- in:   seq bigint
-- out:  as step_find, without result: those that have not ended
SELECT seq, no, name, nth, kind, status, form, NULL, error, attempts, undos, until_at, awaits, node, started_at,
       completed_at
FROM pawl.step WHERE seq = $1:int AND status < 4 ORDER BY no;

-- name: step_last
-- in:   seq bigint[]
-- out:  seq, name, nth of the last step
each SELECT seq, name, nth FROM pawl.step WHERE seq = $1:int[] ORDER BY no DESC LIMIT 1;

-- name: step_undone
-- in:   seq bigint
-- out:  no: the first that was undone, or an undo itself, because a step that was undone as unknown has no row; or one
--       that failed, with nothing but undos behind it: a retry tries it again
SELECT no FROM pawl.step s
WHERE seq = $1:int
  AND ((undos & 2) > 0 OR kind = 8
       OR (status IN (5, 6)
           AND NOT EXISTS (SELECT 1 FROM pawl.step t WHERE t.seq = s.seq AND t.no > s.no AND t.kind <> 8)))
ORDER BY no LIMIT 1;

-- name: step_list
-- in:   seq bigint, from no bigint, max int
-- out:  as step_find
SELECT seq, no, name, nth, kind, status, form, result, error, attempts, undos, until_at, awaits, node, started_at,
       completed_at
FROM pawl.step WHERE seq = $1:int AND no >= $2:int ORDER BY no LIMIT $3:int;

-- name: step_lengths
-- in:   seq bigint, from no bigint, max int
-- out:  no, length of result
-- why:  A page is bounded before its rows are read.
SELECT no, length(result) FROM pawl.step WHERE seq = $1:int AND no >= $2:int ORDER BY no LIMIT $3:int;

-- name: step_add
INSERT ONCE INTO pawl.step (seq, no, name, nth, kind, status, form, result, error, attempts, undos, until_at, awaits,
       node,
  started_at, completed_at)
rows($1:int[], $2:int[], $3:text[], $4:int[], $5:int[], $6:int[], $7:int[], $8:bytes[], $9:text[], $10:int[], $11:int[],
  $12:int[], $13:int[], $14:text[], $15:int[], $16:int[]);

-- name: step_put
-- in:   seq, no, nth, status, form, result, error, attempts, undos, until_at, awaits, node, completed_at
each UPDATE pawl.step SET nth = $3:int[], status = $4:int[], form = $5:int[], result = $6:bytes[], error = $7:text[],
  attempts = $8:int[], undos = $9:int[], until_at = $10:int[], awaits = $11:int[], node = $12:text[],
  completed_at = $13:int[]
WHERE seq = $1:int[] AND no = $2:int[];

-- name: step_forget
-- in:   seq bigint[], from no bigint[]
each DELETE FROM pawl.step WHERE seq = $1:int[] AND no >= $2:int[];

-- name: step_fork
-- in:   new seq bigint, seq bigint, before no bigint
-- why:  They are final in the new run: it never undoes them.
INSERT INTO pawl.step (seq, no, name, nth, kind, status, form, result, error, attempts, undos, until_at, awaits, node,
  started_at, completed_at)
SELECT $1:int, no, name, nth, kind, status, form, result, error, attempts, 4, until_at, 0, node, started_at,
       completed_at
FROM pawl.step WHERE seq = $2:int AND no < $3:int AND status >= 4;

-- name: signal_add
INSERT ONCE INTO pawl.signal (seq, no, name, form, value, idem, at, used, used_at)
rows($1:int[], $2:int[], $3:text[], $4:int[], $5:bytes[], $6:text[], $7:int[], $8:int[], $9:int[]);

-- name: signal_next
-- in:   seq bigint[], name text[]
-- out:  seq, no, name, form, value: the oldest that no step has consumed
each SELECT seq, no, name, form, value FROM pawl.signal
WHERE seq = $1:int[] AND name = $2:text[] AND used IS NULL ORDER BY no LIMIT 1;

-- name: signal_known
-- in:   seq bigint[], idem text[]
-- out:  seq, no, name, form, value
each SELECT seq, no, name, form, value FROM pawl.signal WHERE seq = $1:int[] AND idem = $2:text[];

-- name: signal_use
-- in:   seq bigint[], no bigint[], used bigint[], used_at bigint[], old_at bigint[]
-- why:  used is the number of the step, and above it, from bit 32 on, how often the run had restarted.
each UPDATE pawl.signal SET used = $3:int[], used_at = $4:int[], old_at = $5:int[]
WHERE seq = $1:int[] AND no = $2:int[];

-- name: signal_passed
-- in:   seq bigint[], no bigint[], how long keys of consumed signals are known bigint[]
-- why:  Only signals before the last of their run are in the index by old_at, so gc reads no others.
each UPDATE pawl.signal SET old_at = used_at + $3:int[] WHERE seq = $1:int[] AND no = $2:int[] AND used_at IS NOT NULL;

-- name: signal_unuse
-- in:   seq bigint[], from used bigint[]
each UPDATE pawl.signal SET used = NULL, used_at = NULL, old_at = NULL WHERE seq = $1:int[] AND used >= $2:int[];

-- name: signal_old
-- in:   now bigint, max int
-- out:  seq, no
SELECT seq, no FROM pawl.signal WHERE old_at <= $1:int ORDER BY old_at LIMIT $2:int FOR UPDATE SKIP LOCKED;

-- name: signal_list
-- in:   seq bigint, max int
-- out:  name, at, used_at; the newest first
SELECT name, at, used_at FROM pawl.signal WHERE seq = $1:int ORDER BY no DESC LIMIT $2:int;

-- name: signal_remove
-- in:   seq bigint[], no bigint[]
each DELETE FROM pawl.signal WHERE seq = $1:int[] AND no = $2:int[];

-- name: signal_forget
-- in:   seq bigint[]
each DELETE FROM pawl.signal WHERE seq = $1:int[];

-- name: published_add
-- in:   seq bigint[], name text[], form bigint[], value bytea[], at bigint[]
INSERT ONCE INTO pawl.published (seq, name, form, value, at) rows($1:int[], $2:text[], $3:int[], $4:bytes[], $5:int[]);

-- name: published_put
-- in:   as published_add
each UPDATE pawl.published SET form = $3:int[], value = $4:bytes[], at = $5:int[] WHERE seq = $1:int[] AND name =
       $2:text[];

-- name: published_sizes
-- in:   seq bigint
-- out:  name, length of value
SELECT name, length(value) FROM pawl.published WHERE seq = $1:int;

-- name: published_read
-- in:   seq bigint, name text
-- out:  form, value
SELECT form, value FROM pawl.published WHERE seq = $1:int AND name = $2:text;

-- name: published_lengths
-- in:   seq bigint, max int
-- out:  length of value, by name
SELECT length(value) FROM pawl.published WHERE seq = $1:int ORDER BY name LIMIT $2:int;

-- name: published_list
-- in:   seq bigint, max int
-- out:  name, form, value, by name
SELECT name, form, value FROM pawl.published WHERE seq = $1:int ORDER BY name LIMIT $2:int;

-- name: published_forget
-- in:   seq bigint[]
each DELETE FROM pawl.published WHERE seq = $1:int[];

-- name: child_add
-- why:  The children of a run that was forked are children of both.
INSERT ONCE INTO pawl.child (parent, child, id, awaited, ended, no)
rows($1:int[], $2:int[], $3:text[], $4:int[], $5:int[], $6:int[]);

-- name: child_named
-- in:   parent bigint[], id text[]
-- out:  parent, child, id, awaited, ended
each SELECT parent, child, id, awaited, ended FROM pawl.child WHERE parent = $1:int[] AND id = $2:text[];

-- name: child_parents
-- in:   child bigint[]
-- out:  parent, child, id, awaited, ended
each SELECT parent, child, id, awaited, ended FROM pawl.child WHERE child = $1:int[];

-- name: child_live
-- in:   child bigint[]
-- out:  child: those with a parent that has not ended
each SELECT c.child FROM pawl.child c LEFT JOIN pawl.outcome o ON o.seq = c.parent
WHERE c.child = $1:int[] AND o.seq IS NULL;

-- name: child_list
-- in:   parent bigint, after bigint, max int
-- out:  parent, child, id, awaited, ended
SELECT parent, child, id, awaited, ended FROM pawl.child WHERE parent = $1:int AND child > $2:int
ORDER BY child LIMIT $3:int;

-- name: child_awaited
-- in:   parent bigint[]
-- out:  parent, id: some of those for which it waits
each SELECT parent, id FROM pawl.child WHERE parent = $1:int[] AND awaited > 0 ORDER BY child LIMIT 100;

-- name: child_fork
-- in:   new parent bigint, parent bigint, before no bigint
INSERT INTO pawl.child (parent, child, id, awaited, ended, no)
SELECT $1:int, child, id, 0, ended, 0 FROM pawl.child WHERE parent = $2:int AND no < $3:int;

-- name: child_own
-- in:   parent bigint, after bigint, max int
-- out:  child, id: those that have not ended, that its steps made, and that no other run may wait for
SELECT c.child, c.id FROM pawl.child c
WHERE c.parent = $1:int AND c.child > $2:int AND c.ended = 0 AND c.no > 0
  AND NOT EXISTS (SELECT 1 FROM pawl.child o LEFT JOIN pawl.outcome e ON e.seq = o.parent
                  WHERE o.child = c.child AND o.parent <> c.parent AND e.seq IS NULL)
ORDER BY c.child LIMIT $3:int;

-- name: child_final
-- in:   parent bigint[]
each UPDATE pawl.child SET no = 0, awaited = 0 WHERE parent = $1:int[];

-- name: child_put
-- in:   parent bigint[], child bigint[], awaited bigint[], ended bigint[]
each UPDATE pawl.child SET awaited = $3:int[], ended = $4:int[] WHERE parent = $1:int[] AND child = $2:int[];

-- name: child_forget
-- in:   parent bigint[]
each DELETE FROM pawl.child WHERE parent = $1:int[];

-- name: workflow_lease
-- in:   token bytea
-- out:  claimed_at, until, held
SELECT claimed_at, until, held FROM pawl.lease WHERE token = $1:bytes;
