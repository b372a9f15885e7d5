SELECT s.catalog, s.relation
FROM pgcatalog_state s
JOIN pg_trigger t ON t.tgrelid = to_regclass(quote_ident(s.relation)) AND t.tgname = 'pgcatalog_chunks' AND t.tgenabled <> 'D'
WHERE NOT EXISTS (
        SELECT FROM pg_class c
        WHERE c.relkind = 'r' AND pg_table_is_visible(c.oid) AND obj_description(c.oid, 'pg_class') IS NOT NULL
            AND c.relname ~ ('^pgcatalog_' || to_hex(s.catalog) || '_chunks_[0-9]+$'))
    AND NOT EXISTS (
        SELECT FROM pgcatalog_queue q WHERE q.kind = 'embed' AND (q.catalog, q.zoid) = (s.catalog, s.catalog))
