-- Words of a text index that contain a part of a word, the most frequent first.
-- Values: the part, catalog, text column, a pattern for LIKE, the part.
(
    SELECT %s::text AS part, word FROM pgcatalog_words
    WHERE catalog = %s AND text_column = %s AND ascii(word) > 2 AND word LIKE %s AND word <> %s
    ORDER BY documents DESC, word LIMIT {limit}
)
