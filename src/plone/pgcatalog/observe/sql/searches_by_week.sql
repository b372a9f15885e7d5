-- The searches of each week, for a file: the first day of the week, words and numbers.  Words of members as in top_searches.
WITH known AS (
    SELECT *, max(people) OVER (PARTITION BY words) AS most
    FROM pgcatalog_searches
    WHERE catalog = %(catalog)s AND day > current_date - %(days)s::int
)
SELECT date_trunc('week', day)::date::text AS week, words, sum(searches)::bigint AS searches,
    sum(without_results)::bigint, sum(corrected)::bigint,
    coalesce((array_agg(correction ORDER BY day DESC) FILTER (WHERE correction <> ''))[1], '')
FROM known
WHERE NOT by_members OR most >= %(people)s::int
GROUP BY week, words
ORDER BY week DESC, searches DESC, words LIMIT %(limit)s
