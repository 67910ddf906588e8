-- Calls that applications submitted in SQL, until they are moved into the ledger.

-- name: inbox_any
-- out:  one int
-- why:  One read at the front of an index that is empty most of the time.
SELECT 1 FROM pawl.inbox WHERE refused_at IS NULL LIMIT 1;

-- name: inbox_take
-- in:   max int, len bigint
-- out:  n, id, type, method, key, queue, form, input, priority, run_at, expires_at, options, caller, client, parent,
--       trace, tags, kind
-- why:  As many as fit: each row is limited by the sum of the rows before it, so the first one is always taken.
WITH t AS (SELECT n, coalesce(octet_length(input), 0) AS len FROM pawl.inbox WHERE refused_at IS NULL
           ORDER BY n LIMIT $1::bigint FOR UPDATE SKIP LOCKED),
     s AS (SELECT n, sum(len) OVER (ORDER BY n) - len AS before FROM t)
SELECT b.n, b.id, b.type, b.method, b.key, b.queue, b.form, b.input, b.priority, b.run_at, b.expires_at,
       b.options, b.caller, b.client, b.parent, b.trace, b.tags, b.kind
FROM s JOIN pawl.inbox b ON b.n = s.n WHERE s.before < $2::bigint ORDER BY b.n;

-- name: inbox_remove
-- in:   n bigint[]
DELETE FROM pawl.inbox WHERE n = ANY ($1::bigint[]);

-- name: inbox_refuse
-- in:   now bigint, n bigint[], code text[], reason text[]
UPDATE pawl.inbox b SET refused_at = $1::bigint, code = v.code, reason = v.reason
FROM unnest($2::bigint[], $3::text[], $4::text[]) v (n, code, reason) WHERE b.n = v.n;

-- name: inbox_forget
-- in:   before bigint, max int
DELETE FROM pawl.inbox WHERE n IN (SELECT n FROM pawl.inbox WHERE refused_at <= $1::bigint
                                   ORDER BY refused_at, n LIMIT $2::bigint FOR UPDATE SKIP LOCKED);
