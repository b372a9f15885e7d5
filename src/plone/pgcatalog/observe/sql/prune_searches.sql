-- Deletes old days, and the least frequent searches of each day.
DELETE FROM pgcatalog_searches AS old USING (
    SELECT catalog, day, words,
        row_number() OVER (PARTITION BY catalog, day ORDER BY searches DESC, words) AS place
    FROM pgcatalog_searches
) AS ranked
WHERE old.catalog = ranked.catalog AND old.day = ranked.day AND old.words = ranked.words
    AND (old.day <= current_date - %(days)s::int OR ranked.place > %(words)s)
