-- Requests the end of a long job; one that no session does ends at once, with a reason.  Returns the process id of the session.
-- Values: kind, catalog, subject, reason.
UPDATE pgcatalog_queue AS job
SET stop = true, reason = CASE WHEN pid IS NULL THEN %(reason)s ELSE job.reason END,
    due = CASE WHEN pid IS NULL THEN 'infinity' ELSE job.due END, finished = CASE WHEN pid IS NULL THEN now() END
FROM (SELECT pgcatalog_session_of_job(%(kind)s, %(catalog)s, %(subject)s) AS pid) AS doing
WHERE job.kind = %(kind)s AND job.catalog = %(catalog)s AND job.subject = %(subject)s AND job.due < 'infinity'
RETURNING pid
