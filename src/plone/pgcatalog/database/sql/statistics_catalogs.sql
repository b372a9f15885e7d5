-- The catalogs of a database, with the sizes of their relations.
SELECT s.catalog,
       s.relation,
       s.version,
       s.generation,
       cardinality(s.columns)                      AS columns,
       c.reltuples::bigint                         AS estimated_rows,
       pg_table_size(c.oid)                        AS table_bytes,
       pg_indexes_size(c.oid)                      AS index_bytes,
       coalesce(t.n_dead_tup, 0)                   AS dead_rows,
       greatest(t.last_vacuum, t.last_autovacuum)  AS last_vacuum,
       greatest(t.last_analyze, t.last_autoanalyze) AS last_analyze
FROM pgcatalog_state s
JOIN pg_class c ON c.oid = to_regclass(quote_ident(s.relation))
LEFT JOIN pg_stat_user_tables t ON t.relid = c.oid
ORDER BY s.catalog
