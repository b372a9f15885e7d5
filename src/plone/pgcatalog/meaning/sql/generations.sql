-- The tables of chunks of a catalog: number, name, dimension, comment, estimated number of rows, whether a valid HNSW index
-- exists, and the schema of pgvector.
SELECT substring(c.relname FROM '[0-9]+$')::int, c.relname::text, a.atttypmod, obj_description(c.oid, 'pg_class'),
    c.reltuples::bigint,
    EXISTS (SELECT FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
        WHERE i.indrelid = c.oid AND i.indisvalid AND am.amname = 'hnsw'),
    n.nspname::text
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'embedding' AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid AND t.typname = 'halfvec'
JOIN pg_namespace n ON n.oid = t.typnamespace AND has_schema_privilege(n.oid, 'USAGE')
WHERE c.relkind = 'r' AND pg_table_is_visible(c.oid) AND c.relname ~ %(pattern)s
ORDER BY 1
