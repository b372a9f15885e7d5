-- Saves the reason why the job that matches {same} has failed.  Values besides those of {same}: reason, for_good (true if it
-- is never due again), pause (seconds until it is due, and the attempt does not count; or NULL).
UPDATE pgcatalog_queue
SET reason = %(reason)s, attempts = attempts - (%(pause)s::float IS NOT NULL)::int,
    due = CASE WHEN %(for_good)s THEN 'infinity' ELSE coalesce(now() + make_interval(secs => %(pause)s::float), due) END
WHERE {same}
