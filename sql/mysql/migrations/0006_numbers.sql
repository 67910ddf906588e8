-- How far numbers (seq) and versions of objects were given out, as rows that replicas have. The counters of pawl_number
-- and pawl_version never show in a replica, since none of their rows is ever committed. A program raises `upto` and
-- commits that before it uses any number above it, and its first number on a connection is above `upto`. An older
-- program does not know it. Fit to be run again after a crash in the middle.
CREATE TABLE IF NOT EXISTS pawl_reserve (
  name VARCHAR(20) NOT NULL PRIMARY KEY,
  upto BIGINT NOT NULL
) ENGINE = InnoDB;

-- From the counters as they are here (MySQL remembers what it says of them, unless told not to); and, where these have
-- begun anew on a promoted replica, from what is stored. Places in lines are a number above 2^50; those of calls that
-- run are in leases, which cannot be read here: hence the million.
SET @pawl_seq = 0 /*!80000 , SESSION information_schema_stats_expiry = 0 */;
SET @pawl_seq = (SELECT COALESCE(AUTO_INCREMENT, 1) - 1 FROM information_schema.TABLES
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'pawl_number');
SET @pawl_versions = (SELECT COALESCE(AUTO_INCREMENT, 1) - 1 FROM information_schema.TABLES
                      WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'pawl_version');
INSERT IGNORE INTO pawl_reserve (name, upto) VALUES
  ('seq', IF((SELECT COALESCE(MAX(seq), 0) FROM pawl_call) <= @pawl_seq, @pawl_seq,
     1000000 + GREATEST((SELECT MAX(seq) FROM pawl_call),
                        (SELECT COALESCE(MAX(pos) - 1125899906842624, 0) FROM pawl_line),
                        (SELECT COALESCE(MAX(pos) - 1125899906842624, 0) FROM pawl_ready)))),
  ('version', GREATEST(@pawl_versions, (SELECT COALESCE(MAX(version), 0) FROM pawl_object)));
