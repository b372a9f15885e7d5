-- The advised indexes that were created for one catalog, and their present state on its relation.
SELECT r.name, r.definition, r.columns, r.reason, r.message, r.created_at, x.name,
    i.indexrelid IS NOT NULL AS is_there, coalesce(i.indisvalid, false) AS is_valid,
    CASE WHEN i.indexrelid IS NULL THEN 0 ELSE pg_relation_size(i.indexrelid) END AS bytes,
    coalesce(s.idx_scan, 0) AS scans, l.pid,
    coalesce(p.phase, '') AS phase,
    CASE WHEN p.blocks_total > 0 THEN p.blocks_done::float8 / p.blocks_total
         WHEN p.tuples_total > 0 THEN p.tuples_done::float8 / p.tuples_total ELSE 0 END AS done
FROM pgcatalog_indexes r
CROSS JOIN LATERAL (SELECT %(relation)s || '_' || r.name AS name) x
LEFT JOIN pg_index i ON i.indexrelid = to_regclass(quote_ident(x.name)) AND i.indrelid = to_regclass(%(quoted)s)
LEFT JOIN pg_stat_user_indexes s ON s.indexrelid = i.indexrelid
LEFT JOIN pg_locks l ON l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_database
        WHERE datname = current_database())
    AND l.classid = %(lock)s::int::oid AND l.objid::bigint = (hashtext(x.name)::bigint & 4294967295) AND l.granted
LEFT JOIN pg_stat_progress_create_index p ON p.pid = l.pid
WHERE r.catalog = %(catalog)s
ORDER BY r.created_at, r.name
