-- The oids of catalog tools that have indexes, but no table.
-- Values: module and name of their class.
SELECT zoid FROM object_state o
WHERE class_mod = %s AND class_name = %s
    AND coalesce(state -> '_indexes', '{}') <> '{}'
    AND NOT EXISTS (
        SELECT FROM pgcatalog_state s
        WHERE s.catalog = o.zoid AND to_regclass(quote_ident(s.relation)) IS NOT NULL)
ORDER BY zoid
