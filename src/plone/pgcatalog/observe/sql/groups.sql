-- Slow queries by operation and shape, ordered by the time of those slow for this site, then by total time.
WITH kinds AS (
    SELECT operation, shape, percentile_cont(0.5) WITHIN GROUP (ORDER BY total_ms) AS median_ms,
        min(recorded_at) AS first,
        (array_agg(plan ORDER BY id DESC) FILTER (WHERE plan IS NOT NULL))[1] AS plan
    FROM pgcatalog_slow_queries
    WHERE catalog = %(catalog)s
    GROUP BY operation, shape
), starts AS (
    SELECT greatest(max(process_started), %(started)s::timestamptz) AS last
    FROM pgcatalog_slow_queries WHERE catalog = %(catalog)s
), used AS (
    SELECT EXISTS (SELECT FROM pgcatalog_slow_queries WHERE catalog = %(catalog)s AND recorded_at < last)
        OR EXISTS (SELECT FROM pgcatalog_history
            WHERE catalog = %(catalog)s AND hour < date_trunc('hour', last, 'UTC')) AS before
    FROM starts
), chosen AS (
    SELECT q.*, k.median_ms, k.first, k.plan AS stored_plan,
        q.total_ms >= %(long)s OR q.total_ms >= %(times)s * k.median_ms AS is_long
    FROM pgcatalog_slow_queries q JOIN kinds k USING (operation, shape)
    WHERE q.catalog = %(catalog)s
        AND (%(hours)s::int IS NULL OR q.recorded_at >= now() - %(hours)s::int * interval '1 hour')
        AND (%(page)s::text IS NULL OR q.page = %(page)s::text)
        AND (%(key)s::text IS NULL OR md5(q.operation || ' ' || q.shape) = %(key)s::text)
)
SELECT shape, operation, count(*) AS count, avg(total_ms) AS mean_ms,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY total_ms) AS p95_ms,
    max(total_ms) AS max_ms, sum(total_ms) AS total_ms, max(recorded_at) AS last,
    sum(total_ms) / sum(sum(total_ms)) OVER () AS share, max(id) AS newest,
    md5(operation || ' ' || shape) AS key, median_ms,
    count(*) FILTER (WHERE is_long) AS long,
    (SELECT before FROM used) AND first >= (SELECT last FROM starts) AND NOT EXISTS (
        SELECT FROM pgcatalog_history h
        WHERE h.catalog = %(catalog)s AND h.operation = chosen.operation AND h.shape = chosen.shape
            AND h.hour < date_trunc('hour', (SELECT last FROM starts), 'UTC')) AS is_new,
    sum(embed_ms) AS embed_ms, sum(compile_ms) AS compile_ms, sum(execute_ms) AS execute_ms, sum(decode_ms) AS decode_ms,
    CASE WHEN stored_plan ? 'server_ms' THEN sum(least(execute_ms, (stored_plan ->> 'server_ms')::float8)) END AS server_ms,
    jsonb_build_object('process', count(*) FILTER (WHERE cold = 'process'),
        'connection', count(*) FILTER (WHERE cold = 'connection')) AS cold,
    stored_plan AS plan
FROM chosen
GROUP BY operation, shape, median_ms, first, stored_plan
ORDER BY coalesce(sum(total_ms) FILTER (WHERE is_long), 0) DESC, total_ms DESC, shape, operation
LIMIT %(limit)s
