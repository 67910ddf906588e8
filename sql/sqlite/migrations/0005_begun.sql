-- How many calls of a lease run at once: a call that was claimed and has not begun is pending to readers, and is not
-- counted as lost when its lease is taken back. 0: all of them, which is also what an older program's leases have.
ALTER TABLE pawl_lease ADD COLUMN width INTEGER NOT NULL DEFAULT 0;
