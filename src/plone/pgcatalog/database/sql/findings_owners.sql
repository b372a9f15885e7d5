-- Tables of the storage and of the catalogs that the role of this connection may not alter.
SELECT c.relname AS name, pg_get_userbyid(c.relowner) AS owner
FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace
  AND c.relkind = 'r'
  AND (c.relname IN ('object_state', 'transaction_log') OR c.relname LIKE 'pgcatalog\_%')
  AND NOT pg_has_role(c.relowner, 'USAGE')
ORDER BY c.relname
