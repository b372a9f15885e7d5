-- The most frequent words of a text index, without stems: the words that may be parts of compounds.
SELECT word, documents FROM pgcatalog_spelled(%(catalog)s, %(column)s, '', chr(1114111))
ORDER BY documents DESC, word COLLATE "C" LIMIT %(most)s
