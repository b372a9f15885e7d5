-- The schema of pg_trgm, if the role may use it, and whether its index of words exists.
SELECT n.nspname, to_regclass('pgcatalog_words_trigrams') IS NOT NULL
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_trgm' AND has_schema_privilege(n.oid, 'USAGE')
