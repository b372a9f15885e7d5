-- Histograms of slow queries by hour and by kind: of the last hours, and of the same period a week before.
-- For a single page they are counted from the recorded queries, otherwise read from the history.
-- A row without hour and key is added if the history reaches back a week.
WITH source AS (
    SELECT hour, operation, shape, f.place, f.number
    FROM pgcatalog_history, unnest(figures) WITH ORDINALITY AS f (number, place)
    WHERE catalog = %(catalog)s AND operation <> '' AND %(page)s::text IS NULL
    UNION ALL
    SELECT date_trunc('hour', recorded_at, 'UTC'), operation, shape,
        width_bucket(total_ms, %(bounds)s::float8[]) + 1, 1
    FROM pgcatalog_slow_queries
    WHERE catalog = %(catalog)s AND page = %(page)s::text
), chosen AS (
    SELECT *, hour < date_trunc('hour', now(), 'UTC') - (%(hours)s - 1) * interval '1 hour' AS is_before
    FROM source
    WHERE (%(key)s::text IS NULL OR md5(operation || ' ' || shape) = %(key)s::text)
        AND (hour >= date_trunc('hour', now(), 'UTC') - (%(hours)s - 1) * interval '1 hour'
            OR hour >= date_trunc('hour', now(), 'UTC') - (%(hours)s - 1) * interval '1 hour' - interval '7 days'
            AND hour <= date_trunc('hour', now(), 'UTC') - interval '7 days')
), sums AS (
    SELECT hour, md5(operation || ' ' || shape) AS key, is_before, place, sum(number)::bigint AS number
    FROM chosen
    GROUP BY GROUPING SETS ((hour, is_before, place), (operation, shape, is_before, place))
)
SELECT hour, key, is_before, jsonb_object_agg(place - 1, number) FILTER (WHERE number > 0) AS counts
FROM sums
GROUP BY hour, key, is_before
UNION ALL
(SELECT NULL, NULL, true, NULL FROM pgcatalog_history
WHERE catalog = %(catalog)s AND hour <= date_trunc('hour', now(), 'UTC') - interval '7 days'
LIMIT 1)
ORDER BY hour
