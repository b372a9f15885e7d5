-- Those of some words that the user may see ({seen}), and the similar words of the others ({near}).
-- Values besides those of {seen} and {near}: the words, catalog, text column.
WITH these AS MATERIALIZED (
    SELECT word, documents, {seen} AS is_seen FROM (
        SELECT requested.word, coalesce(w.documents, 0) FROM unnest(%s::text[]) AS requested (word)
        LEFT JOIN pgcatalog_texts t ON t.catalog = %s AND t.text_column = %s
        LEFT JOIN pgcatalog_words w ON w.text_number = t.number AND w.word = requested.word
    ) AS candidate (word, documents)
), candidate AS MATERIALIZED (SELECT word, max(documents) AS documents FROM ({near}) AS near GROUP BY word)
SELECT word, documents FROM these WHERE is_seen
UNION ALL SELECT word, documents FROM candidate WHERE {seen}
