-- Counted words of a text index that match one pattern.
-- Values: the pattern, catalog, text column, first and last word with its prefix, a pattern for LIKE.
(
    SELECT %s::text AS pattern, word FROM pgcatalog_spelled(%s, %s, %s, %s) WHERE word LIKE %s LIMIT {limit}
)
