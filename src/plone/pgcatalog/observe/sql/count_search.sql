-- Adds searches for the same words to the row of today.
INSERT INTO pgcatalog_searches AS known (catalog, words, searches, without_results) VALUES (%s, %s, %s, %s)
ON CONFLICT (catalog, day, words) DO UPDATE SET
    searches = known.searches + excluded.searches, without_results = known.without_results + excluded.without_results
