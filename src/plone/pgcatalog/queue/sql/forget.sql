-- Deletes the oldest failed jobs of a kind.  Values: kind, most (the number that remains).
DELETE FROM pgcatalog_queue AS job USING (
    SELECT catalog, subject FROM pgcatalog_queue
    WHERE kind = %(kind)s AND due = 'infinity' ORDER BY put_at DESC OFFSET %(most)s
) AS old
WHERE job.kind = %(kind)s AND (job.catalog, job.subject) = (old.catalog, old.subject) AND due = 'infinity'
