-- The most similar words of a text index for each word in {requested}.
-- Values after those of {requested}: catalog, text column, the largest difference of lengths.
SELECT requested.word AS requested, near.word, near.documents
FROM (
    SELECT word, pgcatalog_deletions(word) AS heads, pgcatalog_deletions(reverse(word)) AS ends
    FROM {requested} AS word (word) OFFSET 0
) AS requested CROSS JOIN LATERAL (
    SELECT w.word, w.documents FROM pgcatalog_words w
    WHERE w.catalog = %s AND w.text_column = %s AND ascii(w.word) > 2
        AND ({close}) AND abs(length(w.word) - length(requested.word)) <= %s
    ORDER BY (pgcatalog_deletions(w.word) && requested.heads)::integer
        + (pgcatalog_deletions(reverse(w.word)) && requested.ends)::integer DESC,
        w.documents DESC, w.word LIMIT {neighbours}
) AS near
