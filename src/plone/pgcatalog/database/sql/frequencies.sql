-- The share of rows with a value in each column of the catalogs, and the frequencies of few different values.
SELECT tablename::text, attname::text, 1 - null_frac,
    CASE WHEN has_few_values THEN most_common_vals::text::text[] END, CASE WHEN has_few_values THEN most_common_freqs END
FROM pg_stats, LATERAL (SELECT most_common_elems IS NULL AND n_distinct BETWEEN 1 AND 100) AS x (has_few_values)
WHERE schemaname = current_schema() AND tablename IN (SELECT relation FROM pgcatalog_state)
