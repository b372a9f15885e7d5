-- The most frequent words of a text index with a prefix: first those of the SQL index by first letter, then the rarer ones,
-- if there are few of them.
-- Values: catalog, text column, first letter, a pattern for LIKE, {more}; catalog, text column, first and last word, {more}.
(
    WITH frequent AS MATERIALIZED (
        SELECT word, documents FROM pgcatalog_words
        WHERE text_number = (SELECT number FROM pgcatalog_texts WHERE catalog = %s AND text_column = %s)
            AND left(word, 1) = %s AND documents >= 10 AND word LIKE %s {more}
        ORDER BY documents DESC, word LIMIT {candidates}
    )
    SELECT word, documents FROM frequent
    UNION ALL (
        SELECT word, documents FROM pgcatalog_spelled(%s, %s, %s, %s)
        WHERE (SELECT count(*) FROM frequent) < {candidates} AND documents < 10 {more}
        ORDER BY documents DESC, word COLLATE "C" LIMIT {candidates}
    )
    LIMIT {candidates}
)
