-- The tsvector columns of a relation, and whether a second column holds the number of words; an index
-- type of an add-on may have none.
SELECT a.attname AS name,
       EXISTS (SELECT FROM pg_attribute w
               WHERE w.attrelid = a.attrelid AND w.attname = a.attname || '_words' AND NOT w.attisdropped) AS has_length
FROM pg_attribute a
WHERE a.attrelid = to_regclass(quote_ident(%s)) AND a.atttypid = 'tsvector'::regtype AND NOT a.attisdropped
ORDER BY a.attname
