-- Stores a plan with the newest query of its kind that this process has recorded.
UPDATE pgcatalog_slow_queries SET plan = %(plan)s
WHERE id = (
    SELECT max(id) FROM pgcatalog_slow_queries
    WHERE catalog = %(catalog)s AND operation = %(operation)s AND shape = %(shape)s AND process_started = %(started)s)
