-- The numbers of waiting and failed jobs of each kind, the time of the oldest waiting one, and the number of jobs that have
-- found nothing.
-- Values: catalog (NULL for all), backfill (the lowest priority that no save has).
SELECT kind, count(*) FILTER (WHERE due < 'infinity'),
    count(*) FILTER (WHERE due < 'infinity' AND priority < %(backfill)s),
    count(*) FILTER (WHERE due = 'infinity' AND reason <> '' AND NOT is_empty),
    min(put_at) FILTER (WHERE due < 'infinity'), count(*) FILTER (WHERE due = 'infinity' AND reason <> '' AND is_empty)
FROM pgcatalog_queue WHERE %(catalog)s::bigint IS NULL OR catalog = %(catalog)s GROUP BY kind ORDER BY kind
