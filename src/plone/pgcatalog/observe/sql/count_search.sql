-- Adds searches for the same words to the row of a day.
-- Values: those of the columns up to tsquery, the hashes of members, twice, and the maximum number of hashes.
INSERT INTO pgcatalog_searches AS known (
    catalog, day, by_members, words, searches, without_results, corrected, correction, opened, tsquery, people, hashes
) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, cardinality(%s::bytea[]), %s)
ON CONFLICT (catalog, day, by_members, words) DO UPDATE SET
    searches = known.searches + excluded.searches,
    without_results = known.without_results + excluded.without_results,
    corrected = known.corrected + excluded.corrected,
    correction = coalesce(nullif(excluded.correction, ''), known.correction),
    opened = coalesce(known.opened, excluded.opened),
    tsquery = coalesce(nullif(excluded.tsquery, ''), known.tsquery),
    (people, hashes) = (SELECT count(*), coalesce(array_agg(hash), '{}') FROM (
        SELECT DISTINCT hash FROM unnest(known.hashes || excluded.hashes) AS hash LIMIT %s
    ) AS different)
