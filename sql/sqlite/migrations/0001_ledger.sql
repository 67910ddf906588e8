-- The ledger, as doc/ledger.md argues it: state is which table a row is in. Wide rows are written once and
-- never updated; the hot tables are narrow. Times are microseconds since 1970 UTC, text is compared byte for
-- byte, payload forms are 0 nothing, 1 JSON, 2 bytes. No foreign keys between operational tables: every move
-- is one transaction of ours, and retention must not ask four tables for leave.

-- Single numbers: `seq` and objects' `version` (the last ones given out; never reused, so a plain max() would not do).
CREATE TABLE pawl_meta (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO pawl_meta (name, value) VALUES ('seq', 0), ('version', 0), ('min_version', 1);

-- number <-> (queue, type). A claim looks only into the lanes its worker serves.
CREATE TABLE pawl_lane (
  lane  INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  type  TEXT NOT NULL,
  UNIQUE (queue, type)
);

-- Queues somebody paused, or resumed again.
CREATE TABLE pawl_queue (
  queue  TEXT PRIMARY KEY,
  paused INTEGER NOT NULL
) WITHOUT ROWID;

-- The only unique index on ids: a row outlives its call, so that a late repeat is refused instead of run.
CREATE TABLE pawl_id (
  id          TEXT PRIMARY KEY,
  seq         INTEGER NOT NULL,
  fingerprint BLOB NOT NULL
) WITHOUT ROWID;

-- What was asked. Append-only.
CREATE TABLE pawl_call (
  seq        INTEGER PRIMARY KEY,
  id         TEXT NOT NULL,
  lane       INTEGER NOT NULL,
  method     TEXT NOT NULL,
  key        TEXT,
  form       INTEGER NOT NULL,
  input      BLOB,
  priority   INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  run_at     INTEGER NOT NULL,
  expires_at INTEGER,
  options    TEXT,
  caller     TEXT,
  client     TEXT,
  parent     TEXT,
  trace      TEXT,
  tags       TEXT
);
CREATE INDEX pawl_call_lane ON pawl_call (lane, seq);
CREATE INDEX pawl_call_key ON pawl_call (key, seq) WHERE key IS NOT NULL;
CREATE INDEX pawl_call_parent ON pawl_call (parent, seq) WHERE parent IS NOT NULL;
CREATE INDEX pawl_call_caller ON pawl_call (caller, seq) WHERE caller IS NOT NULL;
CREATE INDEX pawl_call_client ON pawl_call (client, seq) WHERE client IS NOT NULL;

CREATE TABLE pawl_tag (
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  seq   INTEGER NOT NULL,
  PRIMARY KEY (name, value, seq)
) WITHOUT ROWID;

-- Claimable calls: those without a key, and the first of each key that is free. track is lane * 2, plus 1 for a suspect (a call that was lost before and is
-- claimed alone), so that a thousand suspects do not stand in the way of the others. rank is -priority, so
-- that the index reads best first.
CREATE TABLE pawl_ready (
  seq      INTEGER PRIMARY KEY,
  track    INTEGER NOT NULL,
  rank     INTEGER NOT NULL,
  run_at   INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lost     INTEGER NOT NULL,
  redrives INTEGER NOT NULL
);
CREATE INDEX pawl_ready_due ON pawl_ready (track, rank, run_at, seq);

-- Pending calls with a key, but for the one on offer, which is in pawl_ready. pos is the place in the line; below 0
-- (-seq) the call is delayed and has not joined.
CREATE TABLE pawl_line (
  key      TEXT NOT NULL,
  pos      INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  lane     INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  run_at   INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lost     INTEGER NOT NULL,
  redrives INTEGER NOT NULL,
  key_no   INTEGER NOT NULL,
  PRIMARY KEY (key, pos)
) WITHOUT ROWID;
CREATE UNIQUE INDEX pawl_line_seq ON pawl_line (seq);
CREATE INDEX pawl_line_later ON pawl_line (run_at, seq) WHERE pos < 0;

-- One row a key: state 0 idle, 1 offered, 2 held, 3 blocked. head is the call on offer, the first of the run without an
-- outcome, or the one that blocks; its place and number mean something unless it is held. held counts the run's calls without an outcome, waiting
-- those in line and on offer, later the delayed ones. ended_at is when a call of it last ended that had been claimed.
CREATE TABLE pawl_key (
  key      TEXT PRIMARY KEY,
  state    INTEGER NOT NULL,
  head     INTEGER NOT NULL,
  head_pos INTEGER NOT NULL,
  head_no  INTEGER NOT NULL,
  next_no  INTEGER NOT NULL,
  held     INTEGER NOT NULL,
  waiting  INTEGER NOT NULL,
  later    INTEGER NOT NULL,
  since    INTEGER NOT NULL,
  ended_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX pawl_key_blocked ON pawl_key (key) WHERE state = 3;
CREATE TABLE pawl_object (
  key        TEXT NOT NULL,
  type       TEXT NOT NULL,
  state      BLOB,
  form       INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (key, type)
) WITHOUT ROWID;

-- One row a batch. held is what model/lease.h packs; low and high bound its seqs, so that "who holds this
-- call" unpacks few of them. rev counts rewrites: an owner's memory of the list holds while rev does.
-- until is NULL for leases that live as long as their node beats.
CREATE TABLE pawl_lease (
  token      BLOB PRIMARY KEY,
  node       TEXT NOT NULL,
  boot       TEXT NOT NULL,
  worker     TEXT,
  claimed_at INTEGER NOT NULL,
  until      INTEGER,
  rev        INTEGER NOT NULL,
  low        INTEGER NOT NULL,
  high       INTEGER NOT NULL,
  held       BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX pawl_lease_until ON pawl_lease (until) WHERE until IS NOT NULL;
CREATE INDEX pawl_lease_owner ON pawl_lease (node, boot);

-- How calls ended. Append-only; inserted plainly, so that a second outcome of one call is an error and never
-- an update. status is enum pawl_state.
CREATE TABLE pawl_outcome (
  seq         INTEGER PRIMARY KEY,
  status      INTEGER NOT NULL,
  form        INTEGER NOT NULL,
  result      BLOB,
  error       TEXT,
  attempts    INTEGER NOT NULL,
  lost        INTEGER NOT NULL,
  redrives    INTEGER NOT NULL,
  key_no      INTEGER NOT NULL,
  token       BLOB,
  node        TEXT,
  claimed_at  INTEGER,
  started_at  INTEGER,
  finished_at INTEGER NOT NULL,
  keep_until  INTEGER NOT NULL
);
CREATE INDEX pawl_outcome_keep ON pawl_outcome (keep_until);
CREATE INDEX pawl_outcome_bad ON pawl_outcome (status, seq) WHERE status <> 3;

-- Tries that did not succeed (how: 2 error, 3 timeout, 4 refused, 8 lost), what was handed back under an
-- HTTP lease (5, 6: only so that a repeated finish gets the first one's answer), and former outcomes of
-- redriven calls (0).
CREATE TABLE pawl_attempt (
  seq         INTEGER NOT NULL,
  no          INTEGER NOT NULL,
  try         INTEGER NOT NULL,
  how         INTEGER NOT NULL,
  status      INTEGER NOT NULL,
  error       TEXT,
  node        TEXT,
  token       BLOB,
  started_at  INTEGER,
  finished_at INTEGER NOT NULL,
  PRIMARY KEY (seq, no)
) WITHOUT ROWID;

-- Durable wishes: claim, retry and reclaim look here. Removed by the outcome.
CREATE TABLE pawl_cancel (
  seq       INTEGER PRIMARY KEY,
  wished_at INTEGER NOT NULL
);

-- Only calls that may expire, and only while they are pending.
CREATE TABLE pawl_expiry (
  expires_at INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  PRIMARY KEY (expires_at, seq)
) WITHOUT ROWID;

-- What is left of an ended call after its retention: enough to refuse a repeat.
CREATE TABLE pawl_gone (
  seq         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL,
  status      INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  forget_at   INTEGER NOT NULL
);
CREATE INDEX pawl_gone_forget ON pawl_gone (forget_at);

-- Calls submitted inside the application's own transactions, moved in after their commit.
CREATE TABLE pawl_inbox (
  n           INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL,
  spec        TEXT NOT NULL,
  input       BLOB,
  form        INTEGER NOT NULL,
  refused     TEXT
);

-- Process incarnations. No foreign key points here: a dead node's row may go at any time.
CREATE TABLE pawl_node (
  node       TEXT PRIMARY KEY,
  boot       TEXT NOT NULL,
  host       TEXT,
  version    TEXT,
  dead       INTEGER NOT NULL,
  slots      INTEGER NOT NULL,
  busy       INTEGER NOT NULL,
  beats      INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  beat_at    INTEGER NOT NULL
) WITHOUT ROWID;
