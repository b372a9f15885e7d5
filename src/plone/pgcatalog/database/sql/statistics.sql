-- PostgreSQL's statistics about the catalogs of a database, or about one of them, without reading their rows; as JSON.
SELECT jsonb_build_object(
    'catalogs', (SELECT coalesce(jsonb_agg(to_jsonb(one) ORDER BY one.catalog), '[]') FROM (
        SELECT s.catalog, s.relation, s.version, s.generation, s.tid, cardinality(s.columns) AS columns,
            c.reltuples::bigint AS estimated_rows,
            pg_table_size(c.oid) AS table_bytes,
            pg_indexes_size(c.oid) AS index_bytes,
            EXISTS (SELECT FROM pg_stats p WHERE p.tablename = s.relation) AS has_statistics,
            coalesce(t.n_dead_tup, 0) AS dead_rows,
            greatest(t.last_vacuum, t.last_autovacuum) AS last_vacuum,
            greatest(t.last_analyze, t.last_autoanalyze) AS last_analyze,
            -- The rebuild that is under way, or was interrupted.
            (SELECT to_jsonb(b) FROM (
                SELECT r.relation, r.phase, r.done, r.total, r.started,
                    (SELECT count(*) FROM pgcatalog_rebuild_change x WHERE x.catalog = r.catalog) AS changes,
                    EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted
                        AND l.classid = %(rebuild)s::int::oid AND l.objid::bigint = r.catalog %% 2147483648
                        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS running
                FROM pgcatalog_rebuild r WHERE r.catalog = s.catalog) b) AS rebuild,
            (SELECT coalesce(jsonb_agg(to_jsonb(k) ORDER BY k.bytes DESC, k.name), '[]') FROM (
                SELECT i.relname AS name, am.amname AS method, pg_relation_size(i.oid) AS bytes,
                    coalesce(u.idx_scan, 0) AS scans,
                    x.indisvalid OR EXISTS (SELECT FROM pg_stat_progress_create_index p
                        WHERE p.index_relid = x.indexrelid) AS valid
                FROM pg_index x
                JOIN pg_class i ON i.oid = x.indexrelid
                JOIN pg_am am ON am.oid = i.relam
                LEFT JOIN pg_stat_user_indexes u ON u.indexrelid = x.indexrelid
                WHERE x.indrelid = c.oid) k) AS indexes,
            -- The parts that the relation has lost since it was created, each with the line that recreates it.
            (SELECT coalesce(jsonb_agg(to_jsonb(m) ORDER BY m.name), '[]') FROM (
                SELECT key AS name, 'part' AS kind, value AS line FROM jsonb_each_text(s.made)
                WHERE NOT EXISTS (SELECT FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
                        WHERE x.indrelid = c.oid AND i.relname = key)
                    AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.conname = key)
                    AND NOT EXISTS (SELECT FROM pg_trigger g
                        WHERE g.tgrelid = c.oid AND g.tgname = key AND g.tgenabled <> 'D')
                UNION ALL
                SELECT name, 'column', 'pgcatalog rebuild ZOPE_CONF' FROM unnest(s.columns || '{rid,zoid,path,idx}') AS name
                WHERE NOT EXISTS (SELECT FROM pg_attribute
                    WHERE attrelid = c.oid AND attname = name AND NOT attisdropped)
                UNION ALL
                SELECT s.relation || '_rows', 'view', 'pgcatalog rebuild ZOPE_CONF'
                WHERE to_regclass(quote_ident(s.relation || '_rows')) IS NULL
                UNION ALL
                SELECT 'pgcatalog_chunks', 'trigger', 'pgcatalog meaning ZOPE_CONF --backfill'
                WHERE NOT EXISTS (SELECT FROM pg_trigger g
                        WHERE g.tgrelid = c.oid AND g.tgname = 'pgcatalog_chunks' AND g.tgenabled <> 'D')
                    AND EXISTS (SELECT FROM pgcatalog_vectors d
                        WHERE d.catalog = s.catalog AND to_regclass(quote_ident(d.relation)) IS NOT NULL)
                UNION ALL
                -- An index made on advice without a job that builds it, or has failed to.
                SELECT s.relation || '_' || r.name, 'advised',
                    format('CREATE INDEX CONCURRENTLY %%I ON %%I %%s', s.relation || '_' || r.name, s.relation, r.definition)
                FROM pgcatalog_indexes r
                WHERE r.catalog = s.catalog AND r.columns <@ (s.columns || '{rid,zoid,path}')
                    AND NOT EXISTS (SELECT FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
                        WHERE x.indrelid = c.oid AND i.relname = s.relation || '_' || r.name)
                    AND NOT EXISTS (SELECT FROM pgcatalog_queue j
                        WHERE j.kind = 'index' AND j.catalog = r.catalog AND j.arguments ->> 'name' = r.name)
                UNION ALL
                SELECT lost.name, 'chunks', lost.line
                FROM pgcatalog_vectors d JOIN pg_class v ON v.oid = to_regclass(quote_ident(d.relation))
                CROSS JOIN LATERAL (
                    SELECT v.relname || '.' || name AS name, format('DROP TABLE %%I', v.relname) AS line
                    FROM unnest('{zoid,chunk,start,stop,digest,embedding}'::text[]) AS name
                    WHERE NOT EXISTS (SELECT FROM pg_attribute
                        WHERE attrelid = v.oid AND attname = name AND NOT attisdropped)
                    UNION ALL
                    SELECT v.relname || '_pkey', format('ALTER TABLE %%I ADD PRIMARY KEY (zoid, chunk)', v.relname)
                    WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = v.oid AND contype = 'p')
                        AND (SELECT count(*) FROM pg_attribute WHERE attrelid = v.oid AND NOT attisdropped
                            AND attname IN ('zoid', 'chunk')) = 2
                    UNION ALL
                    -- The job for the tables of chunks creates this index once it has found all texts in one table.
                    SELECT v.relname || '_hnsw', 'pgcatalog meaning ZOPE_CONF --backfill'
                    WHERE v.reltuples >= %(hnsw_from)s AND d.is_complete
                        AND (SELECT atttypmod FROM pg_attribute WHERE attrelid = v.oid AND attname = 'embedding'
                            AND NOT attisdropped) <= %(hnsw_dimensions)s
                        AND NOT EXISTS (SELECT FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
                            JOIN pg_am am ON am.oid = i.relam
                            WHERE x.indrelid = v.oid AND am.amname = 'hnsw' AND x.indisvalid)
                        AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.relid = v.oid)
                        AND NOT EXISTS (SELECT FROM pgcatalog_queue u
                            WHERE u.kind IN ('embed', 'hnsw') AND u.catalog = s.catalog AND u.subject = s.catalog AND u.due < 'infinity')) AS lost
                WHERE d.catalog = s.catalog) m) AS missing,
            -- The last long job of each kind that people start.
            (SELECT coalesce(jsonb_object_agg(j.kind, jsonb_build_object('finished', j.finished, 
                    'message', coalesce(nullif(j.reason, ''), j.message, ''),
                    'failed', j.due = 'infinity' AND j.reason <> '')), '{}')
                FROM pgcatalog_queue j
                WHERE j.catalog = s.catalog AND j.subject = s.catalog AND j.kind IN ('rebuild', 'verify', 'vacuum')) AS jobs,
            -- Jobs that wait for workers or have failed, by kind; how long the oldest job without an attempt has waited.
            (SELECT coalesce(jsonb_object_agg(w.kind, to_jsonb(w)), '{}') FROM (
                SELECT kind, count(*) FILTER (WHERE due < 'infinity' AND subject <> s.catalog) AS waiting,
                    count(*) FILTER (WHERE due = 'infinity' AND reason <> '' AND NOT is_empty) AS failed,
                    count(*) FILTER (WHERE due = 'infinity' AND reason <> '' AND is_empty) AS empty,
                    coalesce(extract(epoch FROM now() - min(put_at) FILTER (WHERE attempts = 0)), 0)::float8
                        AS oldest_seconds,
                    coalesce(bool_or(attempts > 0 AND reason = '' AND due > now()), false) AS is_being_done,
                    -- A worker has an open session whose name contains the kinds of jobs that it can do.
                    EXISTS (SELECT FROM pg_stat_activity
                        WHERE datname = current_database() AND application_name LIKE 'pgcatalog: queue of %%'
                            AND kind = ANY (string_to_array(application_name, ' '))) AS has_worker,
                    coalesce((array_agg(reason ORDER BY put_at DESC) FILTER (WHERE reason <> ''))[1], '') AS last_reason
                FROM pgcatalog_queue WHERE catalog = s.catalog GROUP BY kind) w) AS queue,
            -- The tables of chunks, the oldest first.
            (SELECT coalesce(jsonb_agg(v ORDER BY v.number), '[]') FROM (
                SELECT d.number, coalesce(nullif(d.answers_as, ''), d.model) AS model, d.is_complete,
                    pg_total_relation_size(c.oid) AS bytes, greatest(c.reltuples, 0)::bigint AS chunks,
                    (SELECT atttypmod FROM pg_attribute WHERE attrelid = c.oid AND attname = 'embedding') AS dimension
                FROM pgcatalog_vectors d JOIN pg_class c ON c.oid = to_regclass(quote_ident(d.relation))
                WHERE d.catalog = s.catalog) v) AS vectors,
            -- The first row of the last 30 days: its hour; rows, bytes of table and indexes, and generation.
            (SELECT jsonb_build_object('hour', h.hour, 'figures', h.figures) FROM pgcatalog_history h
                WHERE h.catalog = s.catalog AND h.operation = '' AND h.hour >= now() - interval '30 days'
                ORDER BY h.hour LIMIT 1) AS growth,
            -- Searches of today, and those of them that found nothing.
            f.searches, f.searches_without_results,
            q.slow_queries, q.long_queries, q.usual_queries, q.advice_waiting
        FROM pgcatalog_state s
        JOIN pg_class c ON c.oid = to_regclass(quote_ident(s.relation))
        LEFT JOIN pg_stat_user_tables t ON t.relid = c.oid
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(searches), 0)::bigint AS searches,
                coalesce(sum(without_results), 0)::bigint AS searches_without_results
            FROM pgcatalog_searches x WHERE x.catalog = s.catalog AND x.day = current_date
        ) f
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE recorded_at >= now() - interval '1 day') AS slow_queries,
                -- Slow for this site, as on the tab: this many milliseconds, or this multiple of the median of the shape.
                count(*) FILTER (WHERE recorded_at >= now() - interval '1 day'
                    AND (total_ms >= %(long)s OR total_ms >= %(times)s * usual_ms)) AS long_queries,
                -- Slow queries per day, on average in the seven days before; NULL if there is nothing that old.
                (SELECT round(sum((SELECT sum(n) FROM unnest(h.figures) AS n)) / 7.0)::bigint FROM pgcatalog_history h
                    WHERE h.catalog = s.catalog AND h.operation <> ''
                        AND h.hour >= now() - interval '8 days' AND h.hour < now() - interval '1 day') AS usual_queries,
                -- Shapes that read far more rows than they return, and for which no index was created yet.
                count(DISTINCT shape) FILTER (WHERE plan IS NOT NULL
                    AND (plan ->> 'rows_read')::bigint
                        >= greatest(%(few)s, %(wasteful)s * (plan ->> 'rows_returned')::bigint)
                    AND NOT EXISTS (SELECT FROM pgcatalog_indexes a
                        WHERE a.catalog = w.catalog AND a.created_at > w.recorded_at)) AS advice_waiting
            FROM pgcatalog_slow_queries w
            JOIN (SELECT operation, shape, percentile_cont(0.5) WITHIN GROUP (ORDER BY total_ms) AS usual_ms
                FROM pgcatalog_slow_queries WHERE catalog = s.catalog GROUP BY operation, shape) k USING (operation, shape)
            WHERE w.catalog = s.catalog
        ) q
        WHERE %(catalog)s::bigint IS NULL OR s.catalog = %(catalog)s::bigint
    ) one),
    -- Relations that wait to be dropped.
    'retired', (SELECT coalesce(jsonb_agg(to_jsonb(r) ORDER BY r.relation), '[]') FROM (
        SELECT relation, coalesce(pg_total_relation_size(to_regclass(quote_ident(relation))), 0) AS bytes
        FROM pgcatalog_retired) r),
    'counts_bytes', pg_total_relation_size('pgcatalog_counts') + pg_total_relation_size('pgcatalog_count_changes'),
    -- Connections: all, idle in a transaction, waiting; and the age of the oldest transaction.
    'connections', (SELECT to_jsonb(a) FROM (
        SELECT count(*) AS connections,
            count(*) FILTER (WHERE state = 'active') AS active,
            count(*) FILTER (WHERE state LIKE 'idle in transaction%%') AS in_transaction,
            count(*) FILTER (WHERE wait_event_type = 'Lock') AS waiting,
            coalesce(extract(epoch FROM clock_timestamp() - min(xact_start)), 0)::float8 AS oldest_transaction_seconds,
            current_setting('max_connections')::int AS max_connections
        FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()) a),
    -- The oldest transaction of another session, and which relations it has locked.
    'oldest', (SELECT to_jsonb(o) FROM (
        SELECT pid, application_name, state,
            extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
            coalesce((SELECT jsonb_agg(DISTINCT l.relation::regclass::text) FROM pg_locks l
                WHERE l.pid = a.pid AND l.locktype = 'relation' AND l.granted AND l.mode <> 'AccessShareLock'
                    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())), '[]') AS locks
        FROM pg_stat_activity a
        WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
            AND xact_start IS NOT NULL
        ORDER BY xact_start LIMIT 1) o),
    -- Sessions that do not wait for others, and for which others have been waiting.
    'blockers', (SELECT coalesce(jsonb_agg(to_jsonb(b) ORDER BY b.wait_seconds DESC, b.pid), '[]') FROM (
        SELECT a.pid, coalesce(a.usename, '') AS user, coalesce(a.application_name, '') AS application_name,
            coalesce(a.state, '') AS state, left(regexp_replace(coalesce(a.query, ''), '\s+', ' ', 'g'), 100) AS query,
            extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, a.backend_start))::float8 AS seconds,
            count(DISTINCT w.pid) AS waiting,
            extract(epoch FROM clock_timestamp() - min(w.waitstart))::float8 AS wait_seconds
        FROM pg_locks w
        JOIN pg_stat_activity s ON s.pid = w.pid AND s.datname = current_database()
        CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS blocking (pid)
        JOIN pg_stat_activity a ON a.pid = blocking.pid
        WHERE NOT w.granted AND w.waitstart < clock_timestamp() - make_interval(secs => %(blocking)s)
            AND cardinality(pg_blocking_pids(a.pid)) = 0
        GROUP BY a.pid, a.usename, a.application_name, a.state, a.query, a.xact_start, a.backend_start) b),
    -- Without the role pg_monitor only the existence of replicas is visible.
    'replicas', (SELECT coalesce(jsonb_agg(to_jsonb(p) ORDER BY p.name), '[]') FROM (
        SELECT coalesce(application_name, '') AS name, state, sync_state,
            CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) END AS lag_bytes,
            extract(epoch FROM replay_lag)::float8 AS lag_seconds
        FROM pg_stat_replication) p),
    -- Whether this server is a standby itself.
    'standby', pg_is_in_recovery()
) AS found
