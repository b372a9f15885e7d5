-- Searches that begin with a text, that found something and that several people have made, of which the user may see a page
-- ({seen}).  Visitors without a login are not told apart, so a day of their searches stands for one of them.
-- Values: catalog, pattern, days, people, twice, and those of {seen}.
WITH candidate AS MATERIALIZED (
    SELECT words, max(tsquery) AS tsquery, sum(searches) AS searches, 0 AS documents
    FROM pgcatalog_searches
    WHERE catalog = %s AND words LIKE %s AND day > current_date - %s::int
        AND searches > without_results AND tsquery <> ''
    GROUP BY words HAVING max(people) >= %s OR count(*) FILTER (WHERE NOT by_members) >= %s
    ORDER BY searches DESC, words LIMIT {candidates}
)
SELECT words, searches::int, -1 FROM candidate WHERE {seen} ORDER BY searches DESC, words LIMIT {limit}
