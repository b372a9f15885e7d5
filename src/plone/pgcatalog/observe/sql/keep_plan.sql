-- The newest query of a kind that this process has recorded gets its plan.
UPDATE pgcatalog_slow_queries SET plan = %(plan)s
WHERE id = (
    SELECT max(id) FROM pgcatalog_slow_queries
    WHERE catalog = %(catalog)s AND operation = %(operation)s AND shape = %(shape)s AND process_started = %(started)s)
