-- Deletes the words of text indexes of a catalog, except some.  Values: the catalog, the columns of these.
WITH gone AS (DELETE FROM pgcatalog_texts WHERE catalog = %s AND text_column <> ALL(%s::text[]) RETURNING number),
words AS (DELETE FROM pgcatalog_words WHERE text_number IN (SELECT number FROM gone))
DELETE FROM pgcatalog_spellings WHERE text_number IN (SELECT number FROM gone)
