-- Connections to this database: how many are there, idle in a transaction, waiting; how old is the oldest snapshot.
SELECT count(*)                                                       AS connections,
       count(*) FILTER (WHERE state = 'active')                       AS active,
       count(*) FILTER (WHERE state LIKE 'idle in transaction%')      AS in_transaction,
       count(*) FILTER (WHERE wait_event_type = 'Lock')               AS waiting,
       coalesce(extract(epoch FROM clock_timestamp() - min(xact_start)), 0)::float8 AS oldest_transaction_seconds,
       current_setting('max_connections')::int                        AS max_connections
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
