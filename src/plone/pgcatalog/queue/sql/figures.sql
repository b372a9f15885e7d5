-- The numbers of waiting and failed jobs of each kind, and the time of the oldest waiting one.
-- Values: catalog (NULL for all), backfill (the lowest priority that no save has).
SELECT kind, count(*) FILTER (WHERE due < 'infinity'),
    count(*) FILTER (WHERE due < 'infinity' AND priority < %(backfill)s), count(*) FILTER (WHERE due = 'infinity' AND reason <> ''),
    min(put_at) FILTER (WHERE due < 'infinity')
FROM pgcatalog_queue WHERE %(catalog)s::bigint IS NULL OR catalog = %(catalog)s GROUP BY kind ORDER BY kind
