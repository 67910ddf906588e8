-- The ledger on PostgreSQL, as doc/ledger.md argues it: state is which table a row is in. Wide rows are written
-- once and never updated; the hot tables are narrow. Times are microseconds since 1970 UTC, text is compared byte
-- for byte, payload forms are 0 nothing, 1 JSON, 2 bytes. No foreign keys between operational tables: every move
-- is one transaction of ours, and retention must not ask four tables for leave.

CREATE TABLE pawl.meta (
  name  text COLLATE "C" PRIMARY KEY,
  value bigint NOT NULL
);
INSERT INTO pawl.meta (name, value) VALUES ('min_version', 1);

-- Numbers of calls and places in lines; versions of objects. They rise; a commit that was undone leaves a gap.
CREATE SEQUENCE pawl.seq CACHE 1;
CREATE SEQUENCE pawl.version CACHE 1;

-- number <-> (queue, type). A claim looks only into the lanes its worker serves. Whoever makes one holds a lock
-- until it commits, so numbers are dense and appear in order.
CREATE TABLE pawl.lane (
  lane  integer PRIMARY KEY,
  queue text COLLATE "C" NOT NULL,
  type  text COLLATE "C" NOT NULL,
  UNIQUE (queue, type)
);

-- Queues somebody paused, or resumed again.
CREATE TABLE pawl.queue (
  queue  text COLLATE "C" PRIMARY KEY,
  paused integer NOT NULL
);

-- The only unique index on ids: a row outlives its call, so that a late repeat is refused instead of run.
CREATE TABLE pawl.id (
  id          text COLLATE "C" PRIMARY KEY,
  seq         bigint NOT NULL,
  fingerprint bytea NOT NULL
);

-- What was asked. Append-only.
CREATE TABLE pawl.call (
  seq        bigint PRIMARY KEY,
  id         text COLLATE "C" NOT NULL,
  lane       integer NOT NULL,
  method     text COLLATE "C" NOT NULL,
  key        text COLLATE "C",
  form       integer NOT NULL,
  input      bytea,
  priority   integer NOT NULL,
  created_at bigint NOT NULL,
  run_at     bigint NOT NULL,
  expires_at bigint,
  options    text COLLATE "C",
  caller     text COLLATE "C",
  client     text COLLATE "C",
  parent     text COLLATE "C",
  trace      text COLLATE "C",
  tags       text COLLATE "C"
);
CREATE INDEX call_lane ON pawl.call (lane, seq);
CREATE INDEX call_key ON pawl.call (key, seq) WHERE key IS NOT NULL;
CREATE INDEX call_parent ON pawl.call (parent, seq) WHERE parent IS NOT NULL;
CREATE INDEX call_caller ON pawl.call (caller, seq) WHERE caller IS NOT NULL;
CREATE INDEX call_client ON pawl.call (client, seq) WHERE client IS NOT NULL;

CREATE TABLE pawl.tag (
  name  text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  seq   bigint NOT NULL,
  PRIMARY KEY (name, value, seq)
);

-- Claimable calls: those without a key, and the first of each key that is free. track is lane * 2, plus 1 for a
-- suspect (a call that was lost before and is claimed alone), so that a thousand suspects do not stand in the way
-- of the others. rank is -priority, so that the index reads best first.
CREATE TABLE pawl.ready (
  seq      bigint PRIMARY KEY,
  track    integer NOT NULL,
  rank     integer NOT NULL,
  run_at   bigint NOT NULL,
  attempts integer NOT NULL,
  lost     integer NOT NULL,
  redrives integer NOT NULL,
  pos      bigint, -- with a key: its place in the line, and its number if it has one
  key_no   bigint
);
CREATE INDEX ready_due ON pawl.ready (track, rank, run_at, seq);

-- Pending calls with a key, but for the one on offer, which is in ready. pos is the place in the line; below 0
-- (-seq) the call is delayed and has not joined.
CREATE TABLE pawl.line (
  key      text COLLATE "C" NOT NULL,
  pos      bigint NOT NULL,
  seq      bigint NOT NULL UNIQUE,
  lane     integer NOT NULL,
  priority integer NOT NULL,
  run_at   bigint NOT NULL,
  attempts integer NOT NULL,
  lost     integer NOT NULL,
  redrives integer NOT NULL,
  key_no   bigint NOT NULL,
  PRIMARY KEY (key, pos)
);
CREATE INDEX line_later ON pawl.line (run_at, seq) WHERE pos < 0;

-- One row a key: state 0 idle, 1 offered, 2 held, 3 blocked; changed only by who holds the row's lock. head is the
-- call on offer, the first of the run without an outcome, or the one that blocks, whose place and number are here. held counts the run's calls without an outcome, waiting those in line and on offer,
-- later the delayed ones, both without what hints still have to add. ended_at is when a call of it last ended that had been claimed.
CREATE TABLE pawl.key (
  key      text COLLATE "C" PRIMARY KEY,
  state    integer NOT NULL,
  head     bigint NOT NULL,
  head_pos bigint NOT NULL,
  head_no  bigint NOT NULL,
  next_no  bigint NOT NULL,
  held     bigint NOT NULL,
  waiting  bigint NOT NULL,
  later    bigint NOT NULL,
  since    bigint NOT NULL,
  ended_at bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX key_blocked ON pawl.key (key) WHERE state = 3;

-- "Look at this key": calls joined its line while somebody else held its row. Added to the row, and removed, by
-- whoever gets the lock next. No unique, no order: nobody waits here.
CREATE TABLE pawl.hint (
  n       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key     text COLLATE "C" NOT NULL,
  waiting bigint NOT NULL,
  later   bigint NOT NULL
);
CREATE INDEX hint_key ON pawl.hint (key);

CREATE TABLE pawl.object (
  key        text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  state      bytea,
  form       integer NOT NULL,
  version    bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (key, type)
);

-- One row a batch. held is what model/lease.h packs; low and high bound its seqs, so that "who holds this call"
-- unpacks few of them. until is NULL for leases that live as long as their node beats.
CREATE TABLE pawl.lease (
  token      bytea PRIMARY KEY,
  node       text COLLATE "C" NOT NULL,
  boot       text COLLATE "C" NOT NULL,
  worker     text COLLATE "C",
  claimed_at bigint NOT NULL,
  until      bigint,
  rev        bigint NOT NULL,
  low        bigint NOT NULL,
  high       bigint NOT NULL,
  held       bytea NOT NULL
);
CREATE INDEX lease_until ON pawl.lease (until, token) WHERE until IS NOT NULL;
CREATE INDEX lease_owner ON pawl.lease (node, boot);
CREATE INDEX lease_low ON pawl.lease (low);

-- How calls ended. Append-only; inserted plainly, so that a second outcome of one call is an error and never an
-- update. status is enum pawl_state.
CREATE TABLE pawl.outcome (
  seq         bigint PRIMARY KEY,
  status      integer NOT NULL,
  form        integer NOT NULL,
  result      bytea,
  error       text COLLATE "C",
  attempts    integer NOT NULL,
  lost        integer NOT NULL,
  redrives    integer NOT NULL,
  key_no      bigint NOT NULL,
  token       bytea,
  node        text COLLATE "C",
  claimed_at  bigint,
  started_at  bigint,
  finished_at bigint NOT NULL,
  keep_until  bigint NOT NULL
);
CREATE INDEX outcome_keep ON pawl.outcome (keep_until, seq);
CREATE INDEX outcome_bad ON pawl.outcome (status, seq) WHERE status <> 3;

-- Tries that did not succeed (how: 2 error, 3 timeout, 4 refused, 8 lost), what was handed back under an HTTP
-- lease (5, 6: only so that a repeated finish gets the first one's answer), and former outcomes of redriven
-- calls (0).
CREATE TABLE pawl.attempt (
  seq         bigint NOT NULL,
  no          integer NOT NULL,
  try         integer NOT NULL,
  how         integer NOT NULL,
  status      integer NOT NULL,
  error       text COLLATE "C",
  node        text COLLATE "C",
  token       bytea,
  started_at  bigint,
  finished_at bigint NOT NULL,
  PRIMARY KEY (seq, no)
);

-- Durable wishes: claim, retry and reclaim look here. Removed by the outcome.
CREATE TABLE pawl.cancel (
  seq       bigint PRIMARY KEY,
  wished_at bigint NOT NULL
);

-- Only calls that may expire, and only while they are pending.
CREATE TABLE pawl.expiry (
  expires_at bigint NOT NULL,
  seq        bigint NOT NULL,
  PRIMARY KEY (expires_at, seq)
);

-- What is left of an ended call after its retention: enough to refuse a repeat.
CREATE TABLE pawl.gone (
  seq         bigint PRIMARY KEY,
  id          text COLLATE "C" NOT NULL,
  status      integer NOT NULL,
  created_at  bigint NOT NULL,
  finished_at bigint NOT NULL,
  forget_at   bigint NOT NULL
);
CREATE INDEX gone_forget ON pawl.gone (forget_at, seq);

-- Process incarnations. No foreign key points here: a dead node's row may go at any time.
CREATE TABLE pawl.node (
  node       text COLLATE "C" PRIMARY KEY,
  boot       text COLLATE "C" NOT NULL,
  host       text COLLATE "C",
  version    text COLLATE "C",
  dead       integer NOT NULL,
  slots      integer NOT NULL,
  busy       integer NOT NULL,
  beats      bigint NOT NULL,
  started_at bigint NOT NULL,
  beat_at    bigint NOT NULL
);
