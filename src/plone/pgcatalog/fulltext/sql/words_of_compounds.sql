-- The most frequent words of a text index, without stems: the words that may be parts of compounds.
SELECT word, documents FROM pgcatalog_words
WHERE catalog = %(catalog)s AND text_column = %(column)s AND ascii(word) > 2
ORDER BY documents DESC, word LIMIT %(most)s
