-- Transactions of this database that have been open for more than a number of seconds, the oldest first.
SELECT pid, coalesce(application_name, '') AS application, coalesce(state, '') AS state,
       extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND xact_start < clock_timestamp() - make_interval(secs => %s)
ORDER BY xact_start
