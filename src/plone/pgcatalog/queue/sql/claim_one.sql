-- Claims one job, due or not, unless it was claimed already or has failed for good.  Values: kind, catalog, subject, back_off.
UPDATE pgcatalog_queue AS job
SET attempts = attempts + 1, due = now() + make_interval(secs => (%(back_off)s::int[])[1])
WHERE kind = %(kind)s AND catalog = %(catalog)s AND subject = %(subject)s AND attempts = 0
RETURNING kind, catalog, subject, attempts, put_by::text, priority, arguments
