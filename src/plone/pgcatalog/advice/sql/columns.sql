-- Planner statistics (ANALYZE) of the columns of one relation.
SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type,
    -- A negative number is a fraction of the rows.
    coalesce(CASE WHEN s.n_distinct < 0 THEN -s.n_distinct * greatest(c.reltuples, 0) ELSE s.n_distinct END, 0)
        AS distinct_values, coalesce(s.null_frac, 0) AS null_fraction,
    coalesce(s.most_common_vals::text::text[], '{}') AS common_values,
    coalesce(s.most_common_freqs::float8[], '{}') AS common_fractions
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
WHERE a.attrelid = to_regclass(%(relation)s) AND a.attnum > 0 AND NOT a.attisdropped
