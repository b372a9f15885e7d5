-- Tables of the storage and of the catalogs that the role of this connection may not alter, with their sequences, views and
-- functions: each with its owner, and the statement that changes it.
WITH things AS (
    SELECT CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE 'SEQUENCE' END AS kind,
           c.relname AS name, quote_ident(c.relname) AS quoted, c.relowner AS owner
    FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace
      AND c.relkind IN ('r', 'v', 'S')
      AND (c.relname IN ('object_state', 'transaction_log', 'blob_state', 'object_history', 'pack_state',
                         'pgjsonb_schema_state', 'zoid_seq')
           OR c.relname LIKE 'pgcatalog\_%')
      -- The sequence of a column changes its owner with its table.
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                      AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND c.relkind = 'S')
    UNION ALL
    SELECT 'FUNCTION', p.proname, p.oid::regprocedure::text, p.proowner
    FROM pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace
      AND (p.proname = 'notify_commit' OR p.proname LIKE 'pgcatalog\_%')
)
SELECT name,
       kind = 'TABLE' AS is_table,
       pg_get_userbyid(owner) AS owner,
       format('ALTER %s %s OWNER TO %I;', kind, quoted, current_user) AS remedy
FROM things
WHERE NOT pg_has_role(owner, 'USAGE')
ORDER BY kind <> 'TABLE', name
