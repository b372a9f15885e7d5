-- The tables of chunks of a catalog, also those that wait to be dropped: number, name, dimension, estimated number of rows,
-- whether a valid HNSW index exists, the schema of pgvector; and the settings in pgcatalog_vectors, or NULLs.
SELECT substring(c.relname FROM '[0-9]+$')::int, c.relname::text, a.atttypmod, c.reltuples::bigint,
    EXISTS (SELECT FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
        WHERE i.indrelid = c.oid AND i.indisvalid AND am.amname = 'hnsw'),
    n.nspname::text,
    v.url, v.model, v.question_prefix, v.passage_prefix, v.answers_as, v.is_complete, v.of_private, v.calibration
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'embedding' AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid AND t.typname = 'halfvec'
JOIN pg_namespace n ON n.oid = t.typnamespace AND has_schema_privilege(n.oid, 'USAGE')
LEFT JOIN pgcatalog_vectors v ON v.relation = c.relname
WHERE c.relkind = 'r' AND pg_table_is_visible(c.oid) AND c.relname ~ %(pattern)s
ORDER BY 1
