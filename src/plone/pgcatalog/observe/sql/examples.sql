-- The newest slow queries of a catalog, optionally of one group (key) or with one id.
SELECT id, recorded_at, path, operation, shape, query, left_out, total_ms, embed_ms, compile_ms, execute_ms,
    decode_ms, result_rows, statement, page, cold,
    coalesce(plan, (
        SELECT p.plan FROM pgcatalog_slow_queries p
        WHERE p.catalog = q.catalog AND p.operation = q.operation AND p.shape = q.shape AND p.plan IS NOT NULL
        ORDER BY p.id DESC LIMIT 1)) AS plan
FROM pgcatalog_slow_queries q
WHERE catalog = %(catalog)s
    AND (%(key)s::text IS NULL OR md5(operation || ' ' || shape) = %(key)s::text)
    AND (%(id)s::bigint IS NULL OR id = %(id)s::bigint)
    AND (%(hours)s::int IS NULL OR recorded_at >= now() - %(hours)s::int * interval '1 hour')
    AND (%(page)s::text IS NULL OR page = %(page)s::text)
ORDER BY id DESC
LIMIT %(limit)s
