-- The most frequent searches of the last days (kind 0), and those mostly without results (kind 1).
WITH counted AS (
    SELECT words, sum(searches)::bigint AS searches, sum(without_results)::bigint AS without_results
    FROM pgcatalog_searches
    WHERE catalog = %(catalog)s AND day > current_date - %(days)s::int
    GROUP BY words
),
top AS (SELECT 0 AS kind, * FROM counted ORDER BY searches DESC, words LIMIT %(limit)s),
missed AS (
    SELECT 1 AS kind, * FROM counted WHERE without_results * 2 > searches
    ORDER BY without_results DESC, words LIMIT %(limit)s
)
SELECT * FROM top UNION ALL SELECT * FROM missed ORDER BY kind, searches DESC, words
