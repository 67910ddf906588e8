-- A place for the step of the lanes, which is made at the same time.
UPDATE pawl_meta SET value = value WHERE name = 'min_version';
