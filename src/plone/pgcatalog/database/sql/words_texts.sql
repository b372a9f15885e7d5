-- Notes what the words of a text index were counted in.
INSERT INTO pgcatalog_texts AS t (catalog, text_column, documents, average_words, generation)
VALUES (%(catalog)s, %(column)s, %(documents)s, %(average)s, %(generation)s)
ON CONFLICT (catalog, text_column) DO UPDATE
SET documents = EXCLUDED.documents, average_words = EXCLUDED.average_words, generation = EXCLUDED.generation,
    counted_at = clock_timestamp()
