-- Workflows: statements whose index SQLite does not choose by itself. What they do is said in sql/all/workflow.sql.

-- name: child_named
-- why:  Without statistics it takes the primary key, and reads all children of the run for each of them.
SELECT parent, child, id, awaited, ended FROM pawl_child INDEXED BY pawl_child_id WHERE parent = ?1 AND id = ?2;
