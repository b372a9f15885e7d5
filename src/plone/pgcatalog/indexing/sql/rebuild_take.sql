-- Takes the first visit of a rebuild that no other transaction has taken.  Values: catalog.
DELETE FROM pgcatalog_queue AS visit
WHERE kind = 'visit' AND catalog = %(catalog)s AND subject = (
    SELECT subject FROM pgcatalog_queue
    WHERE kind = 'visit' AND catalog = %(catalog)s ORDER BY subject LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING visit.arguments
