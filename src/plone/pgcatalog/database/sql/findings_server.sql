-- Properties of server, database and role that a site depends on.
SELECT current_setting('server_version_num')::int              AS version,
       current_setting('server_version')                       AS version_name,
       pg_encoding_to_char(d.encoding)                         AS encoding,
       current_setting('autovacuum')                           AS autovacuum,
       current_setting('track_counts')                         AS track_counts,
       current_setting('fsync')                                AS fsync,
       current_setting('full_page_writes')                     AS full_page_writes,
       pg_size_bytes(current_setting('shared_buffers'))        AS shared_buffers,
       current_setting('max_connections')::int                 AS max_connections,
       current_setting('superuser_reserved_connections')::int  AS reserved,
       d.datconnlimit                                          AS database_limit,
       pg_database_size(d.oid)                                 AS bytes,
       quote_ident(d.datname)                                  AS database,
       quote_ident(current_user)                               AS role,
       quote_ident(current_schema())                           AS schema,
       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
       has_database_privilege(d.oid, 'TEMP')                   AS may_use_temporary_tables,
       (SELECT setting FROM pg_settings WHERE name = 'data_directory') AS data_directory,
       inet_server_addr() IS NULL                              AS is_local
FROM pg_database d
WHERE d.datname = current_database()
