-- Deletes the oldest failed jobs of a kind and a catalog.  Values: kind, catalog, most (the number that remains).
DELETE FROM pgcatalog_queue AS job USING (
    SELECT subject FROM pgcatalog_queue
    WHERE kind = %(kind)s AND catalog = %(catalog)s AND due = 'infinity' ORDER BY put_at DESC OFFSET %(most)s
) AS old
WHERE job.kind = %(kind)s AND job.catalog = %(catalog)s AND job.subject = old.subject AND due = 'infinity'
