-- Condition: the word of the row candidate is in a row of {relation} that matches {where}.
-- Values: catalog and text column, then the values of {relation} and {where}, twice.
(
    candidate.documents > (
        SELECT documents / {frequent} FROM pgcatalog_texts WHERE catalog = %s AND text_column = %s
    ) AND EXISTS (
        SELECT FROM (SELECT * FROM {relation} LIMIT {sample}) AS sample
        WHERE {where} AND {column} @@ ({lexeme})::tsquery
    )
) OR EXISTS (
    WITH holding AS MATERIALIZED (
        SELECT * FROM {relation}
        WHERE {column} @@ ({lexeme})::tsquery
        LIMIT {rows}
    )
    SELECT FROM holding WHERE {where}
)
