-- Adds to hits (rid, zoid, source, …) the kind of the hit's file, whether its text has pages, and the parts of its text with
-- the most of the words, the best first: number of the page, text, and whether the page has text before it and behind it.
-- Values: regular expressions of the words, one that matches each of them, whether a text is not searched further if a page of
-- its beginning, in source, has all words.
WITH hits AS MATERIALIZED ({hits}),
wanted (patterns, anything, is_beginning_enough) AS (VALUES (%s::text[], %s::text, %s::boolean)),
files AS MATERIALIZED (
    SELECT rid, file_kind, file_text, sum(octet_length(file_text)) OVER (ORDER BY rid) <= {most_bytes} AS is_short
    FROM hits CROSS JOIN LATERAL ({file}) AS file
),
searched AS (
    SELECT rid, file_kind, is_short AND strpos(file_text, E'\f') > 0 AS has_pages,
        CASE WHEN is_short AND anything IS NOT NULL AND NOT (is_beginning_enough AND EXISTS (
            SELECT FROM string_to_table(substr(source, strpos(source, E'\f')), E'\f') AS page
            WHERE page COLLATE "C" ~ ALL (patterns)
        )) THEN file_text END AS file_text
    FROM hits JOIN files USING (rid) CROSS JOIN wanted
)
SELECT {columns}, file_kind, has_pages, numbers, parts, have_before, have_behind
FROM hits LEFT JOIN searched USING (rid) LEFT JOIN LATERAL (
    SELECT array_agg(number) AS numbers, array_agg(part) AS parts, array_agg(start > 1) AS have_before,
        array_agg(length(part) = {length}) AS have_behind
    FROM (
        SELECT number, start, substr(page, start, {length}) AS part
        FROM (
            SELECT number, page, places, cardinality(array_remove(places, 0)) AS matched
            FROM (
                SELECT number, page, ARRAY(SELECT regexp_instr(page COLLATE "C", pattern) FROM unnest(patterns) AS pattern) AS places
                FROM wanted CROSS JOIN LATERAL string_to_table(file_text, E'\f') WITH ORDINALITY AS pages (page, number)
                WHERE page COLLATE "C" ~ anything
                OFFSET 0
            ) AS matching
            ORDER BY matched DESC, number
            LIMIT {most_parts}
        ) AS best
        CROSS JOIN LATERAL (
            SELECT min(term) AS term, start
            FROM unnest(places) WITH ORDINALITY AS each (place, term)
            CROSS JOIN LATERAL (
                SELECT CASE WHEN octet_length(page) <= {length} THEN 1 ELSE greatest(1, place - {lead}) END AS start
            ) AS of_term
            WHERE place > 0
            GROUP BY start
        ) AS starts
        ORDER BY matched DESC, number, term
        LIMIT {most_parts}
    ) AS best_parts
) AS found ON TRUE
