-- The SQL indexes of a relation: size, use, and whether a build was interrupted.
SELECT i.relname                      AS name,
       am.amname                      AS method,
       pg_relation_size(i.oid)        AS bytes,
       coalesce(u.idx_scan, 0)        AS scans,
       x.indisvalid                   AS valid
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_am am ON am.oid = i.relam
LEFT JOIN pg_stat_user_indexes u ON u.indexrelid = x.indexrelid
WHERE x.indrelid = to_regclass(quote_ident(%s))
ORDER BY bytes DESC, name
