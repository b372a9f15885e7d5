-- The rows whose texts have the characteristic words of the text of one row, and their scores.
-- Values besides those of {relation}, {itself} and {where}: catalog and text column; the maximum number of rows.
WITH found AS (SELECT rid, {column} AS vector FROM {relation} WHERE {itself} ORDER BY rid LIMIT 1),
frequent AS (
    SELECT lexeme, coalesce(cardinality(positions), 1) AS often FROM found, unnest(vector) AS word
    WHERE ascii(lexeme) > 2 ORDER BY often DESC, lexeme LIMIT {candidates}
),
characteristic AS MATERIALIZED (
    SELECT f.lexeme AS word, (1 + ln(f.often)) * coalesce(ln(1 + c.documents / w.documents::float), 1) ^ 2 AS weight
    FROM frequent f
    LEFT JOIN pgcatalog_texts c ON c.catalog = %s AND c.text_column = %s
    LEFT JOIN pgcatalog_words w ON w.text_number = c.number AND w.word = f.lexeme
    WHERE c.documents IS NULL OR w.documents BETWEEN 2 AND greatest({common}, {common_part} * c.documents)
    ORDER BY weight DESC, word LIMIT {words}
),
hits AS (
    SELECT hit.rid, sum(characteristic.weight) / ln(10 + max(hit.length)) AS score
    FROM characteristic CROSS JOIN LATERAL (
        SELECT rid, coalesce({length}, 0) AS length FROM {relation}
        WHERE {column} @@ ({lexeme})::tsquery AND ({where}) LIMIT {rows}
    ) AS hit
    GROUP BY hit.rid
)
SELECT rid, score FROM hits WHERE rid <> (SELECT rid FROM found) ORDER BY score DESC, rid LIMIT %s
