-- The advised indexes that were created for one catalog, their present state on its relation, and the last job about each.
SELECT r.name, r.definition, r.columns, r.reason, r.created_at, x.name,
    i.indexrelid IS NOT NULL AS is_there, coalesce(i.indisvalid, false) AS is_valid,
    CASE WHEN i.indexrelid IS NULL THEN 0 ELSE pg_relation_size(i.indexrelid) END AS bytes,
    coalesce(s.idx_scan, 0) AS scans,
    coalesce(q.reason, '') AS failure, coalesce(q.due < 'infinity', false) AS is_waiting, coalesce(q.attempts, 0) AS attempts,
    coalesce(q.stop, false) AS stop, l.pid, coalesce(p.phase, '') AS phase,
    CASE WHEN p.blocks_total > 0 THEN p.blocks_done::float8 / p.blocks_total
         WHEN p.tuples_total > 0 THEN p.tuples_done::float8 / p.tuples_total ELSE 0 END AS done
FROM pgcatalog_indexes r
CROSS JOIN LATERAL (SELECT %(relation)s || '_' || r.name AS name) x
LEFT JOIN pg_index i ON i.indexrelid = to_regclass(quote_ident(x.name)) AND i.indrelid = to_regclass(%(quoted)s)
LEFT JOIN pg_stat_user_indexes s ON s.indexrelid = i.indexrelid
LEFT JOIN pgcatalog_queue q ON q.kind = 'index' AND q.catalog = r.catalog AND q.arguments ->> 'name' = r.name
LEFT JOIN LATERAL (SELECT pgcatalog_session_of_job(q.kind, q.catalog, q.subject) AS pid) l ON q.kind IS NOT NULL
LEFT JOIN pg_stat_progress_create_index p ON p.pid = l.pid
WHERE r.catalog = %(catalog)s
ORDER BY r.created_at, r.name
