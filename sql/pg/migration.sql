-- Which migration steps were applied. The table and its schema exist before the first step.

-- name: migration_schema
CREATE SCHEMA IF NOT EXISTS pawl;

-- name: migration_table
-- why:  Created by the first process; the applied steps are then a list in the database.
CREATE TABLE IF NOT EXISTS pawl.migration (
  number     integer PRIMARY KEY,
  word       text NOT NULL,
  checksum   bytea NOT NULL,
  applied_at bigint NOT NULL,
  finished   integer NOT NULL
);

-- name: migration_exists
-- in:   schema text, table text
-- out:  one int
-- why:  An empty database has no such table; a query of the catalogue is not an error.
SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind = 'r';

-- name: migration_lock
-- why:  Two processes that start together run one after the other: the second finds everything done.
SELECT pg_advisory_xact_lock(1885435756, hashtext($1::text));

-- name: migration_list
-- out:  number int, checksum bytea, finished int
SELECT number, checksum, finished FROM pawl.migration ORDER BY number;

-- name: migration_add
-- in:   number int, word text, checksum bytea, applied_at bigint, finished int
INSERT INTO pawl.migration (number, word, checksum, applied_at, finished)
VALUES ($1::bigint, $2::text, $3::bytea, $4::bigint, $5::bigint);

-- name: migration_finish
-- in:   number int
UPDATE pawl.migration SET finished = 1 WHERE number = $1::bigint;

-- name: migration_finished
-- in:   number int
-- out:  finished int
SELECT finished FROM pawl.migration WHERE number = $1::bigint;

-- name: meta_get
-- in:   name text
-- out:  value bigint
SELECT value FROM pawl.meta WHERE name = $1::text;

-- name: migration_strangers
-- in:   schema text, max int
-- out:  what text
-- why:  A function or a trigger that another role created next to ours, while it was allowed to, may run with the
--       owner's rights. Our tables have no triggers. The owner is the owner of the table of steps.
SELECT v.what FROM (
  SELECT pg_catalog.format('function %s.%s(%s) of role "%s"', n.nspname, p.proname,
           pg_catalog.pg_get_function_identity_arguments(p.oid), pg_catalog.pg_get_userbyid(p.proowner)) AS what
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  JOIN pg_catalog.pg_class m ON m.relnamespace = n.oid AND m.relname = 'migration'
  WHERE n.nspname = $1::text AND p.proowner <> m.relowner
  UNION ALL
  SELECT pg_catalog.format('trigger "%s" on %s.%s, which calls %s', t.tgname, n.nspname, c.relname,
           t.tgfoid::pg_catalog.regprocedure)
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1::text AND NOT t.tgisinternal) v
ORDER BY v.what LIMIT $2::bigint;

-- name: migration_grantees
-- in:   schema text, max int
-- out:  role text, what text
-- why:  What `migrate grants` granted to an admin before step 7 stays until it is run again. CREATE in the schema, or
--       TRIGGER on one of its tables, lets a role run code with the owner's rights.
SELECT CASE v.role WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.pg_get_userbyid(v.role) END, pg_catalog.min(v.what) FROM (
  SELECT g.grantee AS role, n.nspowner AS owner, pg_catalog.format('CREATE on schema %s', n.nspname) AS what
  FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) g
  WHERE n.nspname = $1::text AND g.privilege_type = 'CREATE'
  UNION ALL
  SELECT g.grantee, c.relowner, pg_catalog.format('TRIGGER on table %s.%s', n.nspname, c.relname)
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
    pg_catalog.aclexplode(c.relacl) g
  WHERE n.nspname = $1::text AND g.privilege_type = 'TRIGGER') v
WHERE v.role <> v.owner
GROUP BY v.role ORDER BY 1 LIMIT $2::bigint;

-- name: migration_foreign
-- in:   schema text
-- out:  what text, owner text
-- why:  A GRANT on an object of another role is at most a warning, and grants nothing. The schema comes first: its
--       owner is the role to connect as.
SELECT v.what, pg_catalog.pg_get_userbyid(v.owner) FROM (
  SELECT 1 AS place, pg_catalog.format('schema "%s"', n.nspname) AS what, n.nspowner AS owner
  FROM pg_catalog.pg_namespace n WHERE n.nspname = $1::text
  UNION ALL
  SELECT 2, pg_catalog.format('table %s.%s', n.nspname, c.relname), c.relowner
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
  UNION ALL
  SELECT 3, pg_catalog.format('function %s.%s', n.nspname, p.proname), p.proowner
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname = $1::text AND p.proname = 'submit') v
WHERE NOT pg_catalog.pg_has_role(v.owner, 'USAGE')
ORDER BY v.place, v.what LIMIT 1;
