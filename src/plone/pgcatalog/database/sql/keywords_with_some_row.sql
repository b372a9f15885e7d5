-- Those of some keywords that a row of a relation has.
-- Values: the keywords.
WITH newest AS MATERIALIZED (
    SELECT DISTINCT unnest({column}) AS key
    FROM (SELECT {column} FROM {relation} ORDER BY rid DESC LIMIT {newest}) AS rows
)
SELECT key FROM unnest(%s::text[]) AS key
WHERE key IN (SELECT key FROM newest) OR EXISTS (SELECT FROM {relation} WHERE {column} @> ARRAY[key])
ORDER BY key COLLATE "C"
