-- For parts of words and similar words; stems, which begin with chr(2), are excluded.
CREATE INDEX IF NOT EXISTS pgcatalog_words_trigrams ON pgcatalog_words USING gin (word {schema}.gin_trgm_ops)
WHERE ascii(word) > 2
