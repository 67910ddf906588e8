-- The ledger on MariaDB and MySQL, as doc/ledger.md argues it: state is which table a row is in. Wide rows are written
-- once and never updated; the hot tables are narrow. Times are microseconds since 1970 UTC, payload forms are 0
-- nothing, 1 JSON, 2 bytes. Text is stored as bytes, so that A differs from a and trailing spaces count. No foreign
-- keys between operational tables: every move is one transaction of ours. DDL commits by itself here, so every
-- statement can be run again.

CREATE TABLE IF NOT EXISTS pawl_meta (
  name  VARBINARY(255) NOT NULL PRIMARY KEY,
  value BIGINT NOT NULL
) ENGINE = InnoDB;
-- The row of `lane` is what makers of lanes lock.
INSERT IGNORE INTO pawl_meta (name, value) VALUES ('min_version', 1), ('lane', 0);

-- Numbers of calls and places in lines; versions of objects. A row never stays: what counts is the counter, which no
-- rollback takes back. The check is there to fail (seq_next).
CREATE TABLE IF NOT EXISTS pawl_number (
  n    BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kept TINYINT NOT NULL,
  CHECK (kept = 1)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS pawl_version (
  n    BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kept TINYINT NOT NULL,
  CHECK (kept = 1)
) ENGINE = InnoDB;

-- One row a connection, raised by each of its commits that wrote anything: whoever adds up those of the others knows
-- whether to look.
CREATE TABLE IF NOT EXISTS pawl_change (
  conn BIGINT NOT NULL PRIMARY KEY,
  n    BIGINT NOT NULL
) ENGINE = InnoDB;

-- number <-> (queue, type). A claim looks only into the lanes its worker serves. Whoever makes one holds a lock
-- until it commits, so numbers are dense and appear in order.
CREATE TABLE IF NOT EXISTS pawl_lane (
  lane  INT NOT NULL PRIMARY KEY,
  queue VARBINARY(255) NOT NULL,
  type  VARBINARY(255) NOT NULL,
  UNIQUE KEY lane_names (queue, type)
) ENGINE = InnoDB;

-- Queues somebody paused, or resumed again.
CREATE TABLE IF NOT EXISTS pawl_queue (
  queue  VARBINARY(255) NOT NULL PRIMARY KEY,
  paused INT NOT NULL
) ENGINE = InnoDB;

-- The only unique index on ids: a row outlives its call, so that a late repeat is refused instead of run.
CREATE TABLE IF NOT EXISTS pawl_id (
  id          VARBINARY(255) NOT NULL PRIMARY KEY,
  seq         BIGINT NOT NULL,
  fingerprint VARBINARY(32) NOT NULL
) ENGINE = InnoDB;

-- What was asked. Append-only.
CREATE TABLE IF NOT EXISTS pawl_call (
  seq        BIGINT NOT NULL PRIMARY KEY,
  id         VARBINARY(255) NOT NULL,
  lane       INT NOT NULL,
  method     VARBINARY(255) NOT NULL,
  `key`      VARBINARY(255),
  form       INT NOT NULL,
  input      MEDIUMBLOB,
  priority   INT NOT NULL,
  created_at BIGINT NOT NULL,
  run_at     BIGINT NOT NULL,
  expires_at BIGINT,
  options    BLOB,
  caller     VARBINARY(255),
  client     VARBINARY(255),
  parent     VARBINARY(255),
  trace      VARBINARY(255),
  tags       BLOB,
  KEY call_lane (lane, seq)
) ENGINE = InnoDB;

-- Calls by what few of them have (kind 1 key, 2 parent, 3 caller, 4 client). An index of its own for each would have
-- a row for every call, there being no partial ones.
CREATE TABLE IF NOT EXISTS pawl_find (
  kind  TINYINT NOT NULL,
  value VARBINARY(255) NOT NULL,
  seq   BIGINT NOT NULL,
  PRIMARY KEY (kind, value, seq)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS pawl_tag (
  name  VARBINARY(255) NOT NULL,
  value VARBINARY(255) NOT NULL,
  seq   BIGINT NOT NULL,
  PRIMARY KEY (name, value, seq)
) ENGINE = InnoDB;

-- Claimable calls: those without a key, and the first of each key that is free. track is lane * 2, plus 1 for a
-- suspect (a call that was lost before and is claimed alone), so that a thousand suspects do not stand in the way
-- of the others. rank is -priority, so that the index reads best first.
CREATE TABLE IF NOT EXISTS pawl_ready (
  seq      BIGINT NOT NULL PRIMARY KEY,
  track    INT NOT NULL,
  `rank`   INT NOT NULL,
  run_at   BIGINT NOT NULL,
  attempts INT NOT NULL,
  lost     INT NOT NULL,
  redrives INT NOT NULL,
  pos      BIGINT, -- with a key: its place in the line, and its number if it has one
  key_no   BIGINT,
  KEY ready_due (track, `rank`, run_at, seq)
) ENGINE = InnoDB;

-- Pending calls with a key, but for the one on offer, which is in ready. pos is the place in the line; below 0
-- (-seq) the call is delayed and has not joined: then due is its run_at, else NULL. seq is not declared unique,
-- because asking for that locks what stands beside it; the one function that moves a call sees to it.
CREATE TABLE IF NOT EXISTS pawl_line (
  `key`    VARBINARY(255) NOT NULL,
  pos      BIGINT NOT NULL,
  seq      BIGINT NOT NULL,
  lane     INT NOT NULL,
  priority INT NOT NULL,
  run_at   BIGINT NOT NULL,
  due      BIGINT,
  attempts INT NOT NULL,
  lost     INT NOT NULL,
  redrives INT NOT NULL,
  key_no   BIGINT NOT NULL,
  PRIMARY KEY (`key`, pos),
  KEY line_seq (seq),
  KEY line_later (due, seq)
) ENGINE = InnoDB;

-- One row a key: state 0 idle, 1 offered, 2 held, 3 blocked; changed only by who holds the row's lock. head is the
-- call on offer, the first of the run without an outcome, or the one that blocks, whose place and number are here.
-- held counts the run's calls without an outcome, waiting those in line and on offer, later the delayed ones, both
-- without what hints still have to add. ended_at is when a call of it last ended that had been claimed. blocked is 1
-- or NULL, for the index. maker tells whose insert made the row.
CREATE TABLE IF NOT EXISTS pawl_key (
  `key`    VARBINARY(255) NOT NULL PRIMARY KEY,
  state    INT NOT NULL,
  head     BIGINT NOT NULL,
  head_pos BIGINT NOT NULL,
  head_no  BIGINT NOT NULL,
  next_no  BIGINT NOT NULL,
  held     BIGINT NOT NULL,
  waiting  BIGINT NOT NULL,
  later    BIGINT NOT NULL,
  since    BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  blocked  TINYINT,
  maker    BIGINT UNSIGNED NOT NULL,
  KEY key_blocked (blocked, `key`)
) ENGINE = InnoDB;

-- "Look at this key": calls joined its line while somebody else held its row. Added to the row, and removed, by
-- whoever gets the lock next. No unique, no order: nobody waits here.
CREATE TABLE IF NOT EXISTS pawl_hint (
  n       BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  `key`   VARBINARY(255) NOT NULL,
  waiting BIGINT NOT NULL,
  later   BIGINT NOT NULL,
  KEY hint_key (`key`)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS pawl_object (
  `key`      VARBINARY(255) NOT NULL,
  type       VARBINARY(255) NOT NULL,
  state      MEDIUMBLOB,
  form       INT NOT NULL,
  version    BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (`key`, type)
) ENGINE = InnoDB;

-- One row a batch. held is what model/lease.h packs; low and high bound its seqs, so that "who holds this call"
-- unpacks few of them. until is NULL for leases that live as long as their node beats.
CREATE TABLE IF NOT EXISTS pawl_lease (
  token      VARBINARY(32) NOT NULL PRIMARY KEY,
  node       VARBINARY(255) NOT NULL,
  boot       VARBINARY(255) NOT NULL,
  worker     VARBINARY(255),
  claimed_at BIGINT NOT NULL,
  `until`    BIGINT,
  rev        BIGINT NOT NULL,
  low        BIGINT NOT NULL,
  high       BIGINT NOT NULL,
  held       MEDIUMBLOB NOT NULL,
  KEY lease_until (`until`, token),
  KEY lease_owner (node, boot),
  KEY lease_low (low)
) ENGINE = InnoDB;

-- How calls ended. Append-only; inserted plainly, so that a second outcome of one call is an error and never an
-- update. status is enum pawl_state; bad is the same, or NULL for a call that completed.
CREATE TABLE IF NOT EXISTS pawl_outcome (
  seq         BIGINT NOT NULL PRIMARY KEY,
  status      INT NOT NULL,
  form        INT NOT NULL,
  result      MEDIUMBLOB,
  error       BLOB,
  attempts    INT NOT NULL,
  lost        INT NOT NULL,
  redrives    INT NOT NULL,
  key_no      BIGINT NOT NULL,
  token       VARBINARY(32),
  node        VARBINARY(255),
  claimed_at  BIGINT,
  started_at  BIGINT,
  finished_at BIGINT NOT NULL,
  keep_until  BIGINT NOT NULL,
  bad         INT,
  KEY outcome_keep (keep_until, seq),
  KEY outcome_bad (bad, seq)
) ENGINE = InnoDB;

-- Tries that did not succeed (how: 2 error, 3 timeout, 4 refused, 8 lost), what was handed back under an HTTP
-- lease (5, 6: only so that a repeated finish gets the first one's answer), and former outcomes of redriven
-- calls (0).
CREATE TABLE IF NOT EXISTS pawl_attempt (
  seq         BIGINT NOT NULL,
  no          INT NOT NULL,
  try         INT NOT NULL,
  how         INT NOT NULL,
  status      INT NOT NULL,
  error       BLOB,
  node        VARBINARY(255),
  token       VARBINARY(32),
  started_at  BIGINT,
  finished_at BIGINT NOT NULL,
  PRIMARY KEY (seq, no)
) ENGINE = InnoDB;

-- Durable wishes: claim, retry and reclaim look here. Removed by the outcome.
CREATE TABLE IF NOT EXISTS pawl_cancel (
  seq       BIGINT NOT NULL PRIMARY KEY,
  wished_at BIGINT NOT NULL
) ENGINE = InnoDB;

-- Only calls that may expire, and only while they are pending.
CREATE TABLE IF NOT EXISTS pawl_expiry (
  expires_at BIGINT NOT NULL,
  seq        BIGINT NOT NULL,
  PRIMARY KEY (expires_at, seq)
) ENGINE = InnoDB;

-- What is left of an ended call after its retention: enough to refuse a repeat.
CREATE TABLE IF NOT EXISTS pawl_gone (
  seq         BIGINT NOT NULL PRIMARY KEY,
  id          VARBINARY(255) NOT NULL,
  status      INT NOT NULL,
  created_at  BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  forget_at   BIGINT NOT NULL,
  KEY gone_forget (forget_at, seq)
) ENGINE = InnoDB;

-- Calls submitted inside the application's own transactions, moved in after their commit.
CREATE TABLE IF NOT EXISTS pawl_inbox (
  n       BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  id      VARBINARY(255) NOT NULL,
  spec    MEDIUMBLOB NOT NULL,
  input   MEDIUMBLOB,
  form    INT NOT NULL,
  refused BLOB
) ENGINE = InnoDB;

-- Process incarnations. No foreign key points here: a dead node's row may go at any time.
CREATE TABLE IF NOT EXISTS pawl_node (
  node       VARBINARY(255) NOT NULL PRIMARY KEY,
  boot       VARBINARY(255) NOT NULL,
  host       VARBINARY(255),
  version    VARBINARY(255),
  dead       INT NOT NULL,
  slots      INT NOT NULL,
  busy       INT NOT NULL,
  beats      BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  beat_at    BIGINT NOT NULL
) ENGINE = InnoDB;

-- One row a node, never changed: what a claim shares and who takes the node down locks, so that a claim does not stand
-- in the way of its node's beats.
CREATE TABLE IF NOT EXISTS pawl_guard (
  node VARBINARY(255) NOT NULL PRIMARY KEY
) ENGINE = InnoDB;
