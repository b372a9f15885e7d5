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
    SELECT array_agg(number) AS numbers, array_agg(substr(page, start, {length})) AS parts,
        array_agg(start > 1) AS have_before, array_agg(start + {length} <= length(page)) AS have_behind
    FROM (
        SELECT number, page, start
        FROM wanted CROSS JOIN LATERAL (
            SELECT number, page, (SELECT count(*) FROM unnest(patterns) AS pattern WHERE page COLLATE "C" ~ pattern) AS matched
            FROM string_to_table(file_text, E'\f') WITH ORDINALITY AS pages (page, number)
            WHERE page COLLATE "C" ~ anything
            ORDER BY matched DESC, number
            LIMIT {most_parts}
        ) AS best
        CROSS JOIN LATERAL (
            SELECT min(place) AS place, start
            FROM (
                SELECT place, greatest(1, regexp_instr(page COLLATE "C", pattern) - {lead}) AS start
                FROM unnest(patterns) WITH ORDINALITY AS each (pattern, place)
                WHERE length(page) > {length} AND page COLLATE "C" ~ pattern
                UNION ALL SELECT 1, 1 WHERE length(page) <= {length}
            ) AS starts
            GROUP BY start
        ) AS each_start
        ORDER BY matched DESC, number, place
        LIMIT {most_parts}
    ) AS best_parts
) AS found ON TRUE
