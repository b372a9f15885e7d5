-- The most similar words of a text index for each word in {requested}.
-- Values after those of {requested}: catalog, text column, the largest difference of lengths.
SELECT requested.word AS requested, near.word, near.documents FROM {requested} AS requested (word) CROSS JOIN LATERAL (
    SELECT w.word, w.documents FROM pgcatalog_words w
    WHERE w.catalog = %s AND w.text_column = %s AND ascii(w.word) > 2
        AND ({close}) AND abs(length(w.word) - length(requested.word)) <= %s
    ORDER BY pgcatalog_deletions(reverse(w.word)) && pgcatalog_deletions(reverse(requested.word)) DESC,
        w.documents DESC, w.word LIMIT {neighbours}
) AS near
