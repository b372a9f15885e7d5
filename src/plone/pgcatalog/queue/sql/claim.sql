-- Claims the first due job of some kinds in the given {order}, and postpones it.  {free} and {lock} are for long jobs: only a
-- job that no session does, and its lock.
-- Values: kinds, back_off (seconds until a job that was claimed for the n-th time is due again).
WITH next AS MATERIALIZED (
    -- A CTE runs once.  If this were a table in FROM, the planner might run it for each row of another scan, and it would
    -- find another row each time: all jobs would be claimed, and only the first be done.
    -- A condition on infinity lets the planner use the index on priority.
    SELECT kind, catalog, subject FROM pgcatalog_queue
    WHERE due <= now() AND due < 'infinity' AND kind = ANY(%(kinds)s) {free}
    ORDER BY {order} LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE pgcatalog_queue AS job
SET attempts = attempts + 1,
    due = now() + make_interval(secs => (%(back_off)s::int[])[least(attempts + 1, cardinality(%(back_off)s::int[]))])
FROM next
WHERE (job.kind, job.catalog, job.subject) = (next.kind, next.catalog, next.subject) {lock}
RETURNING job.kind, job.catalog, job.subject, job.attempts, job.put_by::text, job.priority, job.arguments
