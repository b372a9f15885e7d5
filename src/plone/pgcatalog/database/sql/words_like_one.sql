(
    SELECT %s::text AS pattern, word FROM pgcatalog_words
    WHERE catalog = %s AND text_column = %s AND word BETWEEN %s AND %s AND word LIKE %s LIMIT {limit}
)
