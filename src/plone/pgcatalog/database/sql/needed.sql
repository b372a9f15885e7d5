-- Data that decides which jobs a catalog needs: its relation and columns, its site's settings, its tables of chunks (the
-- newest first), whether texts of files are in use, and whether a job for the tables of chunks is queued.
SELECT s.relation, s.columns, o.state -> '_settings' AS settings,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('name', v.relation, 'model', v.model, 'passage_prefix', v.passage_prefix,
            'is_complete', v.is_complete) ORDER BY v.number DESC), '[]')
        FROM pgcatalog_vectors v
        WHERE v.catalog = s.catalog AND to_regclass(quote_ident(v.relation)) IS NOT NULL) AS tables,
    EXISTS (SELECT FROM pgcatalog_file_texts)
        OR EXISTS (SELECT FROM pgcatalog_queue q WHERE q.kind = 'text' AND q.catalog = s.catalog) AS has_texts,
    EXISTS (SELECT FROM pgcatalog_queue q
        WHERE (q.kind, q.catalog, q.subject) = ('embed', s.catalog, s.catalog)) AS has_table_job
FROM pgcatalog_state s
JOIN object_state o ON o.zoid = s.catalog
WHERE s.catalog = %(catalog)s AND to_regclass(quote_ident(s.relation)) IS NOT NULL
