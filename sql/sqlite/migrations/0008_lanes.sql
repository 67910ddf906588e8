-- A lane is a set of (queue, type, needs, gate): needs are the capabilities that its calls need, gate the limits that
-- apply to them (none yet), each as sorted names with newlines between them. A lane that has no calls is retired
-- (retired_at, microseconds; 0: in use), and removed an hour later, so numbers have gaps.
-- The table is made anew, because SQLite cannot drop the index of a UNIQUE constraint.
CREATE TABLE pawl_lane_next (
  lane       INTEGER PRIMARY KEY,
  queue      TEXT NOT NULL,
  type       TEXT NOT NULL,
  needs      TEXT NOT NULL DEFAULT '',
  gate       TEXT NOT NULL DEFAULT '',
  retired_at INTEGER NOT NULL DEFAULT 0,
  UNIQUE (queue, type, needs, gate)
);
INSERT INTO pawl_lane_next (lane, queue, type) SELECT lane, queue, type FROM pawl_lane;
DROP TABLE pawl_lane;
ALTER TABLE pawl_lane_next RENAME TO pawl_lane;

-- Capabilities of a node's workers, and of an archived call; the same form.
ALTER TABLE pawl_node ADD COLUMN has TEXT;
ALTER TABLE pawl_archive ADD COLUMN needs TEXT;

-- finish
-- An older program serves lanes without looking at their needs, and reads a missing number as damage: lanes with needs
-- are made, and lanes are removed, only when no such program is left.
UPDATE pawl_meta SET value = max(value, 8) WHERE name = 'min_version';
