-- The most frequent searches (kind 0), those mostly without results (kind 1), those with a correction (kind 2), those of whose hits
-- none was opened (kind 3), and the numbers of each week (kind 4), whose words are its first day.  Words of members are
-- counted if enough of them searched on one day.
WITH known AS (
    SELECT *, max(people) OVER (PARTITION BY words) AS most
    FROM pgcatalog_searches
    WHERE catalog = %(catalog)s AND day > current_date - %(days)s::int
),
shown AS (
    SELECT date_trunc('week', day)::date AS week, words, searches, without_results, corrected, correction, opened, day
    FROM known WHERE NOT by_members OR most >= %(people)s::int
),
counted AS (
    SELECT words, sum(searches)::bigint AS searches, sum(without_results)::bigint AS without_results,
        sum(corrected)::bigint AS corrected, sum(opened) AS opened,
        coalesce((array_agg(correction ORDER BY day DESC) FILTER (WHERE correction <> ''))[1], '') AS correction
    FROM shown WHERE %(week)s::date IS NULL OR week = %(week)s::date
    GROUP BY words
),
listed AS (
    (SELECT 0 AS kind, * FROM counted WHERE searches > 0 ORDER BY searches DESC, words LIMIT %(limit)s)
    UNION ALL (
        SELECT 1, * FROM counted WHERE (without_results - corrected) * 2 > searches
        ORDER BY without_results DESC, words LIMIT %(limit)s
    )
    UNION ALL (SELECT 2, * FROM counted WHERE corrected > 0 ORDER BY corrected DESC, words LIMIT %(limit)s)
    UNION ALL (
        SELECT 3, * FROM counted WHERE opened = 0 AND searches - without_results >= %(people)s::int
        ORDER BY searches DESC, words LIMIT %(limit)s
    )
    UNION ALL
    SELECT 4, week::text, sum(searches)::bigint, sum(without_results)::bigint, sum(corrected)::bigint, NULL, ''
    FROM shown GROUP BY week
)
SELECT kind, words, searches, without_results, corrected, correction FROM listed
ORDER BY kind, CASE kind WHEN 4 THEN words END DESC, CASE kind WHEN 2 THEN corrected ELSE searches END DESC, words
