-- Suggested words ({suggested}: word, documents, kind) with spellings of each in pages that the user may see: those behind a
-- word in small letters, so that neither the beginning of a sentence nor a title with capitals counts.  A space is before that
-- word, because a page's id, which has none, stands before its title.  All rows with a frequent word are only read if the
-- first rows have too few pages.
-- Values: those of {suggested}; letters and their classes in a regular expression; catalog, text column, twice the values of
-- {relation} and {where}.
WITH suggested (word, documents, kind) AS MATERIALIZED ({suggested}),
numbered AS (
    SELECT *, row_number() OVER (ORDER BY kind, documents DESC, word) AS number FROM suggested WHERE kind >= 0
), candidate AS MATERIALIZED (
    SELECT word, documents, (
        SELECT '\s[[:lower:]]\w*\s+(' || string_agg(
            coalesce(spelling.class, '[' || CASE WHEN letter ~ '\w' THEN '' ELSE '\' END || letter || upper(letter) || ']'),
            '' ORDER BY place
        ) || ')\M'
        FROM string_to_table(replace(word, 'ss', 'ß'), NULL) WITH ORDINALITY AS letters (letter, place)
        LEFT JOIN unnest(%s::text[], %s::text[]) AS spelling (letter, class) USING (letter)
    ) AS pattern, documents > (
        SELECT documents / {frequent} FROM pgcatalog_texts WHERE catalog = %s AND text_column = %s
    ) AS is_frequent
    FROM numbered WHERE number <= {words}
)
SELECT suggested.word, suggested.documents, suggested.kind, ARRAY(
    WITH holding AS MATERIALIZED (
        SELECT * FROM (SELECT * FROM {relation} LIMIT {sample}) AS sample
        WHERE candidate.is_frequent AND {column} @@ ({lexeme})::tsquery
        UNION ALL (SELECT * FROM {relation} WHERE {column} @@ ({lexeme})::tsquery LIMIT {rows})
    )
    SELECT form[1] FROM (
        SELECT left({source}, {length}) AS text FROM holding WHERE {where} LIMIT {pages}
    ) AS page CROSS JOIN LATERAL (
        SELECT form FROM regexp_matches(page.text, candidate.pattern, 'g') AS found (form) LIMIT {forms}
    ) AS found
)
FROM suggested LEFT JOIN candidate USING (word)
