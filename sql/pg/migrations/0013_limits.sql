-- Limits: how many calls run at once, and how many begin in a time. A program of an older version claims without asking
-- them, so none is stored before the second half has run.

-- number is never used again: a limit that is to hold for other calls gets a new one. queue, type, key_prefix: null is
-- any. running: how many may run at once, 0: any number. rate: how many may begin in per_us, 0: any number; burst: of
-- these, how many at one time.
CREATE TABLE pawl.limits (
  number     bigint PRIMARY KEY,
  name       text COLLATE "C" NOT NULL UNIQUE,
  queue      text COLLATE "C",
  type       text COLLATE "C",
  key_prefix text COLLATE "C",
  running    bigint NOT NULL,
  rate       bigint NOT NULL,
  per_us     bigint NOT NULL,
  burst      bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);

-- A limit of n is n rows. seq: the call that has it; null: it is free. surplus 1: the limit was lowered or removed while
-- a call had it, so it goes with that call. Rows of limits that were removed stay until then.
CREATE TABLE pawl.slot (
  number  bigint NOT NULL,
  no      bigint NOT NULL,
  seq     bigint,
  surplus bigint NOT NULL,
  PRIMARY KEY (number, no)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX slot_call ON pawl.slot (seq, number) WHERE seq IS NOT NULL;
CREATE INDEX slot_free ON pawl.slot (number, seq);
CREATE INDEX slot_surplus ON pawl.slot (number) WHERE surplus = 1;

-- When the rate of a limit has been used up to, in nanoseconds: the later it is, the fewer may begin now.
CREATE TABLE pawl.bucket (
  number  bigint PRIMARY KEY,
  used_ns bigint NOT NULL
);

-- A change of limits raises it.
INSERT INTO pawl.meta (name, value) VALUES ('limits', 0);

-- For claims: hold back changes of limits until the transaction ends, then read the revision; the second statement sees
-- what was committed while the first one waited.
CREATE FUNCTION pawl.limits_share(schema text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock_shared(1885435758, pg_catalog.hashtext(limits_share.schema));
  RETURN (SELECT m.value FROM pawl.meta m WHERE m.name = 'limits');
END $$;
REVOKE ALL ON FUNCTION pawl.limits_share FROM PUBLIC;
-- finish
UPDATE pawl.meta SET value = greatest(value, 13) WHERE name = 'min_version';
