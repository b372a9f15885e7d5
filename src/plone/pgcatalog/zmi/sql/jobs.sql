-- The jobs of one catalog; a running job holds a lock, which is released with its connection, some time after its end.
SELECT j.name, j.done, j.total, j.message, j.failed, j.stop, j.started, j.finished,
    j.finished IS NULL AND EXISTS (
        SELECT FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.granted
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND l.classid = %(lock)s::int::oid
            AND l.objid::bigint = (hashtext(j.catalog || ' ' || j.name)::bigint & 4294967295)
    ) AS is_running
FROM pgcatalog_jobs j
WHERE j.catalog = %(catalog)s
ORDER BY j.name
