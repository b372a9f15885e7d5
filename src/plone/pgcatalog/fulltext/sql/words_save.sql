-- Makes pgcatalog_words and pgcatalog_spellings equal to the counts in pg_temp.pgcatalog_counted, by writing only the
-- differences.  Value: the number of the text index.
WITH counted AS MATERIALIZED (
    SELECT word, sum(documents)::integer AS documents FROM pg_temp.pgcatalog_counted GROUP BY word ORDER BY word
), block AS MATERIALIZED (
    SELECT min(word) AS first, string_agg(word, chr(2) ORDER BY word) AS words
    FROM (
        SELECT word, count(*) FILTER (WHERE hashtext(word) & 15 = 0) OVER (ORDER BY word) AS number
        FROM counted WHERE ascii(word) > 2
    ) AS plain
    GROUP BY number
), gone AS (
    DELETE FROM pgcatalog_words w
    WHERE w.text_number = %(number)s
      AND NOT EXISTS (SELECT FROM counted c WHERE c.word = w.word AND c.documents > 1)
), gone_blocks AS (
    DELETE FROM pgcatalog_spellings s
    WHERE s.text_number = %(number)s AND NOT EXISTS (SELECT FROM block b WHERE b.first = s.first)
), blocks AS (
    INSERT INTO pgcatalog_spellings (text_number, first, words)
    SELECT %(number)s, b.first, b.words
    FROM block b LEFT JOIN pgcatalog_spellings s ON s.text_number = %(number)s AND s.first = b.first
    WHERE s.words IS DISTINCT FROM b.words
    ORDER BY b.first
    ON CONFLICT (text_number, first) DO UPDATE SET words = EXCLUDED.words
)
INSERT INTO pgcatalog_words (text_number, documents, word)
SELECT %(number)s, c.documents, c.word
FROM counted c
LEFT JOIN pgcatalog_words w ON w.text_number = %(number)s AND w.word = c.word
WHERE c.documents > 1 AND w.documents IS DISTINCT FROM c.documents
ORDER BY c.word
ON CONFLICT (text_number, word) DO UPDATE SET documents = EXCLUDED.documents
