-- Words that begin with a prefix ({beginning}), then words that nearly do ({candidates}) and that the user may see ({seen}).
-- Values: those of {beginning}, {candidates} and {seen}.
WITH begun (word, documents, nearness) AS MATERIALIZED ({beginning}),
candidate AS MATERIALIZED ({candidates})
SELECT * FROM begun UNION ALL
(SELECT word, documents, 1 FROM candidate WHERE word NOT IN (SELECT word FROM begun) AND ({seen}) LIMIT {limit})
