-- The share of rows with a value in each column of the catalogs, the frequencies of few different values, and, of texts and
-- times, some values between which there are equally many rows.
SELECT s.tablename::text, s.attname::text, 1 - s.null_frac,
    CASE WHEN has_few_values THEN most_common_vals::text::text[] END, CASE WHEN has_few_values THEN most_common_freqs END,
    CASE a.atttypid
        WHEN 'text'::regtype THEN ARRAY(
            SELECT left(value, 200) FROM unnest(histogram_bounds::text::text[]) WITH ORDINALITY AS b (value, number)
            WHERE number % 5 = 1 ORDER BY number
        )
        WHEN 'timestamptz'::regtype THEN ARRAY(
            SELECT to_char(value AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')
            FROM unnest(histogram_bounds::text::timestamptz[]) WITH ORDINALITY AS b (value, number)
            WHERE number % 5 = 1 ORDER BY number
        )
    END
FROM pg_stats s
JOIN pg_attribute a ON a.attrelid = to_regclass(quote_ident(s.tablename)) AND a.attname = s.attname,
    LATERAL (SELECT most_common_elems IS NULL AND n_distinct BETWEEN 1 AND 100) AS x (has_few_values)
WHERE s.schemaname = current_schema() AND s.tablename IN (SELECT relation FROM pgcatalog_state)
