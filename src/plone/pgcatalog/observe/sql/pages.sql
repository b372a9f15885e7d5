-- The pages that ran slow queries, those with the longest total time first.
SELECT page
FROM pgcatalog_slow_queries
WHERE catalog = %(catalog)s AND page <> ''
    AND (%(hours)s::int IS NULL OR recorded_at >= now() - %(hours)s::int * interval '1 hour')
GROUP BY page
ORDER BY sum(total_ms) DESC
LIMIT %(limit)s
