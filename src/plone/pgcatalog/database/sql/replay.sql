-- The state of a standby: whether it follows a primary, and by how many seconds it lags at most (null: unknown).  Received
-- changes that are not replayed yet count as old as the last replayed transaction; so do changes that may be missing while
-- nothing is received.
SELECT streaming,
    CASE WHEN streaming AND pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn() THEN 0
        ELSE greatest(0, extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())) END::float8
        AS lag_seconds
FROM (SELECT EXISTS (SELECT FROM pg_stat_wal_receiver) AS streaming) AS receiver
WHERE pg_is_in_recovery()
