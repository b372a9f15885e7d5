-- The most similar words of a text index for some of the given words ({requested}).
-- Values: words, regular expressions for blocks with near words; catalog, text column, the largest difference of lengths;
-- the same three again.
SELECT requested.word AS requested, near.word, near.documents
FROM (
    SELECT word, pattern, pgcatalog_near_keys(word) AS keys
    FROM unnest(%s::text[], %s::text[]) AS given (word, pattern) WHERE {requested} OFFSET 0
) AS requested CROSS JOIN LATERAL (
    SELECT candidate.word, coalesce((
        SELECT w.documents FROM pgcatalog_words w
        WHERE w.text_number = candidate.text_number AND w.word = candidate.word
    ), 1) AS documents
    FROM (
        SELECT s.text_number, spelled.word
        FROM pgcatalog_spellings s CROSS JOIN unnest(string_to_array(s.words, chr(2))) AS spelled (word)
        WHERE s.text_number = (SELECT number FROM pgcatalog_texts WHERE catalog = %s AND text_column = %s)
            AND pgcatalog_near_keys(s.words) && requested.keys AND s.words ~ requested.pattern
            AND abs(length(spelled.word) - length(requested.word)) <= %s AND spelled.word ~ requested.pattern
        {similar}
    ) AS candidate
    ORDER BY (right(candidate.word, 1) = right(requested.word, 1))::integer
        + (right(candidate.word, 2) = right(requested.word, 2))::integer
        + (right(candidate.word, 3) = right(requested.word, 3))::integer
        + (left(candidate.word, 2) = left(requested.word, 2))::integer
        - abs(length(candidate.word) - length(requested.word)) DESC,
        documents DESC, candidate.word COLLATE "C" LIMIT {neighbours}
) AS near
