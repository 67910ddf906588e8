-- How many calls of a lease run at once: a call that was claimed and has not begun is pending to readers, and is not
-- counted as lost when its lease is taken back. 0: all of them, which is also what an older program's leases have.
-- Fit to be run again after a crash in the middle, since each statement here commits by itself; MySQL has no ADD
-- COLUMN IF NOT EXISTS.
SET @pawl_step = IF((SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()
                     AND TABLE_NAME = 'pawl_lease' AND COLUMN_NAME = 'width') > 0, 'DO 0',
  'ALTER TABLE pawl_lease ADD COLUMN width INT NOT NULL DEFAULT 0');
PREPARE pawl_step FROM @pawl_step;
EXECUTE pawl_step;
DEALLOCATE PREPARE pawl_step;
