-- Deletes old days, and the least frequent searches of each day, those of members by themselves.
DELETE FROM pgcatalog_searches AS old USING (
    SELECT catalog, day, by_members, words,
        row_number() OVER (PARTITION BY catalog, day, by_members ORDER BY searches DESC, words) AS place
    FROM pgcatalog_searches
) AS ranked
LEFT JOIN unnest(%(catalogs)s::bigint[], %(days)s::int[]) AS stored (catalog, days) USING (catalog)
WHERE (old.catalog, old.day, old.by_members, old.words) = (ranked.catalog, ranked.day, ranked.by_members, ranked.words)
    AND (old.day <= current_date - coalesce(stored.days, %(most)s::int) OR ranked.place > %(words)s)
