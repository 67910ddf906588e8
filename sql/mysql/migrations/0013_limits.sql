-- Limits: how many calls run at once, and how many begin in a time. A program of an older version claims without asking
-- them, so none is stored before the second half has run.

-- number is never used again: a limit that is to hold for other calls gets a new one. queue, type, key_prefix: null is
-- any. running: how many may run at once, 0: any number. rate: how many may begin in per_us, 0: any number; burst: of
-- these, how many at one time.
CREATE TABLE IF NOT EXISTS pawl_limits (
  number     BIGINT PRIMARY KEY,
  name       VARBINARY(255) NOT NULL UNIQUE,
  queue      VARBINARY(255),
  type       VARBINARY(255),
  key_prefix VARBINARY(255),
  running    BIGINT NOT NULL,
  rate       BIGINT NOT NULL,
  per_us     BIGINT NOT NULL,
  burst      BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
) ENGINE = InnoDB;

-- A limit of n is n rows. seq: the call that has it; null: it is free. surplus 1: the limit was lowered or removed while
-- a call had it, so it goes with that call. Rows of limits that were removed stay until then.
CREATE TABLE IF NOT EXISTS pawl_slot (
  number  BIGINT NOT NULL,
  no      BIGINT NOT NULL,
  seq     BIGINT,
  surplus BIGINT NOT NULL,
  PRIMARY KEY (number, no),
  UNIQUE KEY slot_call (seq, number),
  KEY slot_free (number, seq),
  KEY slot_surplus (number, surplus)
) ENGINE = InnoDB;

-- When the rate of a limit has been used up to, in nanoseconds: the later it is, the fewer may begin now.
CREATE TABLE IF NOT EXISTS pawl_bucket (
  number  BIGINT PRIMARY KEY,
  used_ns BIGINT NOT NULL
) ENGINE = InnoDB;

-- A change of limits raises it.
INSERT IGNORE INTO pawl_meta (name, value) VALUES ('limits', 0);
-- finish
UPDATE pawl_meta SET value = GREATEST(value, 13) WHERE name = 'min_version';
