-- The catalog, if it has texts whose words should be counted, and no job for that: at first, and when the given part of the
-- documents has changed.  A count that has failed is tried again after an hour.  Values: catalog, changed_part.
SELECT s.catalog
FROM pgcatalog_state s
CROSS JOIN LATERAL (
    SELECT min(generation) AS generation, max(documents) AS documents FROM pgcatalog_texts WHERE catalog = s.catalog
) AS counted
WHERE s.catalog = %(catalog)s
    AND (counted.generation IS NULL OR s.generation < counted.generation
        OR s.generation - counted.generation > counted.documents * %(changed_part)s::float8)
    AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(s.relation))
        AND atttypid = 'tsvector'::regtype AND NOT attisdropped)
    AND NOT EXISTS (SELECT FROM pgcatalog_queue q
        WHERE (q.kind, q.catalog, q.subject) = ('words', s.catalog, s.catalog)
            AND (q.due < 'infinity' OR q.put_at > now() - interval '1 hour'))
