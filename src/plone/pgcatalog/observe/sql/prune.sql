-- Deletes all but the newest rows, and rows that are too old.
DELETE FROM pgcatalog_slow_queries
WHERE id <= coalesce((SELECT id FROM pgcatalog_slow_queries ORDER BY id DESC OFFSET %(rows)s LIMIT 1), 0)
   OR recorded_at < now() - %(days)s * interval '1 day'
