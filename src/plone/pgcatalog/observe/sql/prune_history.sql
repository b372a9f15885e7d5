-- Deletes all but the newest rows about slow queries, and rows that are too old.
DELETE FROM pgcatalog_history
WHERE hour < now() - %(days)s * interval '1 day'
    OR operation <> '' AND hour < coalesce(
        (SELECT hour FROM pgcatalog_history WHERE operation <> '' ORDER BY hour DESC OFFSET %(lines)s LIMIT 1), '-infinity')
