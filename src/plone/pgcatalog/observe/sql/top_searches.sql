-- The most frequent searches (kind 0), those mostly without results (kind 1), those mostly corrected (kind 2), and the numbers
-- of each week (kind 3), whose words are its first day.  Words of members are counted if enough of them searched on one day.
WITH known AS (
    SELECT *, max(people) OVER (PARTITION BY words) AS most
    FROM pgcatalog_searches
    WHERE catalog = %(catalog)s AND day > current_date - %(days)s::int
),
shown AS (
    SELECT date_trunc('week', day)::date AS week, words, searches, without_results, corrected, correction, day
    FROM known WHERE NOT by_members OR most >= %(people)s::int
),
counted AS (
    SELECT words, sum(searches)::bigint AS searches, sum(without_results)::bigint AS without_results,
        sum(corrected)::bigint AS corrected,
        coalesce((array_agg(correction ORDER BY day DESC) FILTER (WHERE correction <> ''))[1], '') AS correction
    FROM shown WHERE %(week)s::date IS NULL OR week = %(week)s::date
    GROUP BY words
),
top AS (SELECT 0 AS kind, * FROM counted WHERE searches > 0 ORDER BY searches DESC, words LIMIT %(limit)s),
missed AS (
    SELECT 1 AS kind, * FROM counted WHERE (without_results - corrected) * 2 > searches
    ORDER BY without_results DESC, words LIMIT %(limit)s
),
corrected AS (
    SELECT 2 AS kind, * FROM counted WHERE corrected > 0 ORDER BY corrected DESC, words LIMIT %(limit)s
),
weeks AS (
    SELECT 3 AS kind, week::text, sum(searches)::bigint, sum(without_results)::bigint, sum(corrected)::bigint, ''
    FROM shown GROUP BY week
)
SELECT * FROM (
    SELECT * FROM top UNION ALL SELECT * FROM missed UNION ALL SELECT * FROM corrected UNION ALL SELECT * FROM weeks
) AS listed
ORDER BY kind, CASE kind WHEN 3 THEN words END DESC, CASE kind WHEN 2 THEN corrected ELSE searches END DESC, words
