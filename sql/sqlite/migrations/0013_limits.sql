-- Limits: how many calls run at once, and how many begin in a time. A program of an older version claims without asking
-- them, so none is stored before the second half has run.

-- number is never used again: a limit that is to hold for other calls gets a new one. queue, type, key_prefix: null is
-- any. running: how many may run at once, 0: any number. rate: how many may begin in per_us, 0: any number; burst: of
-- these, how many at one time.
CREATE TABLE pawl_limits (
  number     INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  queue      TEXT,
  type       TEXT,
  key_prefix TEXT,
  running    INTEGER NOT NULL,
  rate       INTEGER NOT NULL,
  per_us     INTEGER NOT NULL,
  burst      INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);

-- A limit of n is n rows. seq: the call that has it; null: it is free. surplus 1: the limit was lowered or removed while
-- a call had it, so it goes with that call. Rows of limits that were removed stay until then.
CREATE TABLE pawl_slot (
  number  INTEGER NOT NULL,
  no      INTEGER NOT NULL,
  seq     INTEGER,
  surplus INTEGER NOT NULL,
  PRIMARY KEY (number, no)
) WITHOUT ROWID;
CREATE UNIQUE INDEX pawl_slot_call ON pawl_slot (seq, number) WHERE seq IS NOT NULL;
CREATE INDEX pawl_slot_free ON pawl_slot (number, seq);
CREATE INDEX pawl_slot_surplus ON pawl_slot (number) WHERE surplus = 1;

-- When the rate of a limit has been used up to, in nanoseconds: the later it is, the fewer may begin now.
CREATE TABLE pawl_bucket (
  number  INTEGER PRIMARY KEY,
  used_ns INTEGER NOT NULL
);

-- A change of limits raises it.
INSERT INTO pawl_meta (name, value) VALUES ('limits', 0);
-- finish
UPDATE pawl_meta SET value = max(value, 13) WHERE name = 'min_version';
