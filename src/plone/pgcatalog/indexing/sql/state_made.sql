-- Records the parts that the relation of a catalog was created with, each with the line that recreates it: its own SQL
-- indexes, constraints and triggers of counts.
UPDATE pgcatalog_state SET made = (
    SELECT coalesce(jsonb_object_agg(name, line), '{}') FROM (
        SELECT i.relname AS name, replace(pg_get_indexdef(i.oid), 'CREATE INDEX', 'CREATE INDEX CONCURRENTLY') AS line
        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
        WHERE x.indrelid = to_regclass(quote_ident(%(relation)s)) AND i.relname = ANY(%(indexes)s::text[])
        UNION ALL
        SELECT conname, 'ALTER TABLE ' || quote_ident(%(relation)s) || ' ADD CONSTRAINT ' || quote_ident(conname) || ' '
            || pg_get_constraintdef(oid)
        FROM pg_constraint
        WHERE conrelid = to_regclass(quote_ident(%(relation)s)) AND contype IN ('p', 'u', 'f')
        UNION ALL
        SELECT tgname, 'pgcatalog vacuum ZOPE_CONF'
        FROM pg_trigger
        WHERE tgrelid = to_regclass(quote_ident(%(relation)s)) AND starts_with(tgname, 'pgcatalog_count_')
    ) AS made)
WHERE catalog = %(catalog)s
