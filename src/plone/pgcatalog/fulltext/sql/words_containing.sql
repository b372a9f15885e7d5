-- Words of a text index that contain a part of a word, the most frequent first.
-- Values: the part, catalog, text column, a pattern for LIKE, the pattern, the part.
(
    SELECT part, word FROM (
        SELECT %s::text AS part, spelled.word COLLATE "C", coalesce((
            SELECT w.documents FROM pgcatalog_words w WHERE w.text_number = t.number AND w.word = spelled.word
        ), 1) AS documents
        FROM pgcatalog_texts t JOIN pgcatalog_spellings s ON s.text_number = t.number
        CROSS JOIN unnest(string_to_array(s.words, chr(2))) AS spelled (word)
        WHERE t.catalog = %s AND t.text_column = %s AND s.words LIKE %s AND spelled.word LIKE %s AND spelled.word <> %s
    ) AS containing
    ORDER BY documents DESC, word LIMIT {limit}
)
