-- Saves the reason why the job that matches {same} has failed.  Values besides those of {same}: reason, for_good (true if it
-- is never due again), is_empty (true if it has found nothing), pause (seconds until it is due, and the attempt does not
-- count; or NULL), backfill (the priority of a job that has failed for good, so that repeating many of them delays no save).
UPDATE pgcatalog_queue
SET priority = CASE WHEN %(for_good)s THEN %(backfill)s ELSE priority END,
    reason = %(reason)s, is_empty = %(is_empty)s, attempts = attempts - (%(pause)s::float IS NOT NULL)::int,
    finished = CASE WHEN %(for_good)s THEN now() END,
    due = CASE WHEN %(for_good)s THEN 'infinity' ELSE coalesce(now() + make_interval(secs => %(pause)s::float), due) END
WHERE {same}
