-- Columns with few different values.
-- Values: the quoted relation, names of columns, maximum number of values, and maximum share of the rows.
SELECT attname::text FROM pg_stats, pg_class c
WHERE c.oid = to_regclass(%s) AND schemaname = current_schema() AND tablename = relname AND attname = ANY(%s::text[])
    AND CASE WHEN n_distinct < 0 THEN -n_distinct * reltuples ELSE n_distinct END BETWEEN 1 AND least(%s, %s * reltuples)
