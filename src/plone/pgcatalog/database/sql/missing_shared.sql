SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NULL
UNION ALL SELECT name || '()' FROM unnest(%s::text[]) AS name WHERE to_regproc(name) IS NULL
UNION ALL SELECT name FROM unnest(%s::text[], %s::text[]) AS sql_index (of, name)
    WHERE to_regclass(of) IS NOT NULL AND to_regclass(name) IS NULL
UNION ALL SELECT of || '.' || name FROM unnest(%s::text[], %s::text[]) AS later (of, name)
    WHERE to_regclass(of) IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = to_regclass(of) AND attname = name AND NOT attisdropped)
