-- Adds a row of the current hour with the sizes of each catalog; the first process to write it wins.
INSERT INTO pgcatalog_history (catalog, hour, operation, shape, figures)
SELECT s.catalog, date_trunc('hour', now(), 'UTC'), '', '',
    ARRAY[greatest(c.reltuples, 0)::bigint, pg_table_size(c.oid), pg_indexes_size(c.oid), s.generation]
FROM pgcatalog_state s JOIN pg_class c ON c.oid = to_regclass(quote_ident(s.relation))
ON CONFLICT DO NOTHING
