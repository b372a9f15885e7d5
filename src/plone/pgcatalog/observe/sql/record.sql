-- Records a slow query.
INSERT INTO pgcatalog_slow_queries
    (catalog, path, operation, shape, query, left_out, total_ms, embed_ms, compile_ms, execute_ms, decode_ms,
     result_rows, statement, page, cold, process_started)
VALUES (%s, %s, %s, %s, %s::jsonb, %s::text[], %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
