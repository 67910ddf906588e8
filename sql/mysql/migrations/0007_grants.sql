-- Nothing: this engine has no functions in SQL. Numbers of steps are shared with PostgreSQL, where this one keeps
-- functions that run with their owner's rights from calling another role's.
DO 0;
