-- The most similar words of a text index for each word in {asked}.
-- Values after those of {asked}: catalog, text column, the largest difference of lengths.
SELECT asked.word AS asked, near.word, near.documents FROM {asked} AS asked (word) CROSS JOIN LATERAL (
    SELECT w.word, w.documents FROM pgcatalog_words w
    WHERE w.catalog = %s AND w.text_column = %s AND ascii(w.word) > 2
        AND ({close}) AND abs(length(w.word) - length(asked.word)) <= %s
    ORDER BY pgcatalog_deletions(reverse(w.word)) && pgcatalog_deletions(reverse(asked.word)) DESC,
        w.documents DESC, w.word LIMIT {neighbours}
) AS near
