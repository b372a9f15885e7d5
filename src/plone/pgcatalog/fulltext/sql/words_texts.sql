-- Records the documents in which the words of a text index were counted, and returns the number of the text index.
INSERT INTO pgcatalog_texts AS t
    (catalog, text_column, documents, average_words, generation, relation, counted_from, counted_by)
VALUES (
    %(catalog)s, %(column)s, %(documents)s, %(average)s, %(generation)s,
    %(relation)s, %(since)s::xid8, pg_current_xact_id()
)
ON CONFLICT (catalog, text_column) DO UPDATE
SET documents = EXCLUDED.documents, average_words = EXCLUDED.average_words, generation = EXCLUDED.generation,
    relation = EXCLUDED.relation, counted_from = EXCLUDED.counted_from, counted_by = EXCLUDED.counted_by,
    counted_at = clock_timestamp()
RETURNING number
