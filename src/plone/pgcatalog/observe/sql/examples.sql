-- The newest slow queries of a catalog; of one shape and operation if they are given; one of them by its id.
SELECT id, recorded_at, path, operation, shape, query, left_out, total_ms, compile_ms, execute_ms, decode_ms,
    result_rows, statement
FROM pgcatalog_slow_queries
WHERE catalog = %(catalog)s
    AND (%(shape)s::text IS NULL OR shape = %(shape)s::text)
    AND (%(operation)s::text IS NULL OR operation = %(operation)s::text)
    AND (%(id)s::bigint IS NULL OR id = %(id)s::bigint)
ORDER BY id DESC
LIMIT %(limit)s
