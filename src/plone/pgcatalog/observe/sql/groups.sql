-- Slow queries by shape, those first that cost most time.
SELECT shape, operation, count(*) AS count, avg(total_ms) AS mean_ms,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY total_ms) AS p95_ms,
    max(total_ms) AS max_ms, sum(total_ms) AS total_ms, max(recorded_at) AS last,
    sum(total_ms) / sum(sum(total_ms)) OVER () AS share, max(id) AS newest
FROM pgcatalog_slow_queries
WHERE catalog = %(catalog)s
GROUP BY shape, operation
ORDER BY total_ms DESC, shape, operation
LIMIT %(limit)s
