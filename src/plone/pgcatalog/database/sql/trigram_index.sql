-- For parts of words, and words that are similar; stems, which begin with chr(2), are none.
CREATE INDEX IF NOT EXISTS pgcatalog_words_trigrams ON pgcatalog_words USING gin (word {schema}.gin_trgm_ops)
WHERE ascii(word) > 2
