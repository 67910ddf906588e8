-- From the second half of this step on, calls may be watched by features: an older program reads a watched call, and
-- a lease with marks, as damage.
UPDATE pawl_meta SET value = value WHERE name = 'min_version';

-- finish
UPDATE pawl_meta SET value = GREATEST(value, 9) WHERE name = 'min_version';
