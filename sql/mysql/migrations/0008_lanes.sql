-- A lane is a set of (queue, type, needs, gate): needs are the capabilities that its calls need, gate the limits that
-- apply to them (none yet), each as sorted names with newlines between them. A lane that has no calls is retired
-- (retired_at, microseconds; 0: in use), and removed an hour later, so numbers have gaps.
-- Those that make lanes hold a lock until they commit, so that no two have the same names. No index enforces it: all
-- four columns in a key would take 2,700 of the 3,072 bytes that InnoDB allows at best, and more than the 1,536 or 768
-- that smaller pages or an older row format leave. Fit to be run again after a crash in the middle.
SET @pawl_step = IF((SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()
                     AND TABLE_NAME = 'pawl_lane' AND COLUMN_NAME = 'retired_at') > 0, 'DO 0',
  'ALTER TABLE pawl_lane ADD COLUMN needs VARBINARY(1100) NOT NULL DEFAULT \'\',
     ADD COLUMN gate VARBINARY(1100) NOT NULL DEFAULT \'\', ADD COLUMN retired_at BIGINT NOT NULL DEFAULT 0,
     DROP KEY lane_names, ADD KEY lane_names (queue, type)');
PREPARE pawl_step FROM @pawl_step;
EXECUTE pawl_step;
DEALLOCATE PREPARE pawl_step;

-- Capabilities of a node's workers, and of an archived call; the same form.
SET @pawl_step = IF((SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()
                     AND TABLE_NAME = 'pawl_node' AND COLUMN_NAME = 'has') > 0, 'DO 0',
  'ALTER TABLE pawl_node ADD COLUMN has BLOB');
PREPARE pawl_step FROM @pawl_step;
EXECUTE pawl_step;
DEALLOCATE PREPARE pawl_step;
SET @pawl_step = IF((SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()
                     AND TABLE_NAME = 'pawl_archive' AND COLUMN_NAME = 'needs') > 0, 'DO 0',
  'ALTER TABLE pawl_archive ADD COLUMN needs VARBINARY(1100)');
PREPARE pawl_step FROM @pawl_step;
EXECUTE pawl_step;
DEALLOCATE PREPARE pawl_step;

-- finish
-- An older program serves lanes without looking at their needs, and reads a missing number as damage: lanes with needs
-- are made, and lanes are removed, only when no such program is left.
UPDATE pawl_meta SET value = GREATEST(value, 8) WHERE name = 'min_version';
