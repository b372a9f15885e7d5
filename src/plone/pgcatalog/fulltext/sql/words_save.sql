-- Makes pgcatalog_words equal to the counts in pg_temp.pgcatalog_counted, by writing only the differences.
WITH counted AS MATERIALIZED (
    SELECT word, sum(documents)::integer AS documents FROM pg_temp.pgcatalog_counted GROUP BY word
), gone AS (
    DELETE FROM pgcatalog_words w
    WHERE w.catalog = %(catalog)s AND w.text_column = %(column)s
      AND NOT EXISTS (SELECT FROM counted c WHERE c.word = w.word)
)
INSERT INTO pgcatalog_words (catalog, text_column, word, documents)
SELECT %(catalog)s, %(column)s, c.word, c.documents
FROM counted c
LEFT JOIN pgcatalog_words w ON w.catalog = %(catalog)s AND w.text_column = %(column)s AND w.word = c.word
WHERE w.documents IS DISTINCT FROM c.documents
ON CONFLICT (catalog, text_column, word) DO UPDATE SET documents = EXCLUDED.documents
