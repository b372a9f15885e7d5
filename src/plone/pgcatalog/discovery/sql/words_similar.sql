-- Words by trigrams, by the operator of pg_trgm in {schema}.
-- Values: catalog, text column, the largest difference of lengths.
UNION SELECT w.text_number, w.word FROM pgcatalog_words w
WHERE w.text_number = (SELECT number FROM pgcatalog_texts WHERE catalog = %s AND text_column = %s) AND ascii(w.word) > 2
    AND w.word OPERATOR({schema}.%%) requested.word AND abs(length(w.word) - length(requested.word)) <= %s
