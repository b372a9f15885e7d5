-- The numbers of the parts that are missing, disabled or invalid, of a list of parts: kinds, names, and the tables that they
-- are of.
SELECT number, state
FROM unnest(%(kind)s::text[], %(name)s::text[], %(of)s::text[]) WITH ORDINALITY AS thing (kind, name, of, number)
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN kind IN ('table', 'sequence') THEN CASE WHEN to_regclass(name) IS NULL THEN 'missing' END
        WHEN kind = 'function' THEN CASE WHEN to_regproc(name) IS NULL THEN 'missing' END
        WHEN to_regclass(of) IS NULL THEN NULL
        WHEN kind = 'column' THEN CASE WHEN NOT EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = to_regclass(of) AND attname = name AND NOT attisdropped)
            THEN 'missing' END
        WHEN kind = 'key' THEN CASE WHEN NOT EXISTS (
            SELECT FROM pg_constraint WHERE conrelid = to_regclass(of) AND contype::text = name) THEN 'missing' END
        WHEN kind = 'trigrams' AND NOT (
            EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm' AND has_schema_privilege(extnamespace, 'USAGE'))
            AND (SELECT reltuples > 0 FROM pg_class WHERE oid = to_regclass(of)))
            THEN NULL
        WHEN kind IN ('index', 'trigrams') THEN coalesce((
            SELECT CASE WHEN NOT indisvalid THEN 'invalid' ELSE '' END FROM pg_index
            WHERE indexrelid = to_regclass(name) AND indrelid = to_regclass(of)), 'missing')
        WHEN kind = 'trigger' THEN coalesce((
            SELECT CASE WHEN tgenabled = 'D' THEN 'disabled' ELSE '' END FROM pg_trigger
            WHERE tgrelid = to_regclass(of) AND tgname = name), 'missing')
    END AS state) AS found
WHERE state <> ''
ORDER BY number
