-- Adds to hits (rid, zoid, source, …) the kind of the hit's file, whether its text has pages, and the columns of
-- pgcatalog_file_parts.  Values: the rids in the order of the hits, and the last three arguments of pgcatalog_file_parts.
WITH hits AS MATERIALIZED ({hits}),
files AS MATERIALIZED (
    SELECT rid, file.kind, file.text,
        sum(octet_length(file.text)) OVER (ORDER BY array_position(%s::bigint[], rid)) <= {most_bytes} AS is_short
    FROM hits CROSS JOIN LATERAL pgcatalog_file(zoid) AS file WHERE strpos(source, E'\f') > 0
)
SELECT {columns}, kind, is_short AND strpos(text, E'\f') > 0, numbers, parts, have_before, have_behind
FROM hits LEFT JOIN files USING (rid){chunks} LEFT JOIN LATERAL pgcatalog_file_parts(
    CASE WHEN is_short THEN text END, source, %s::text[], %s::text, %s::boolean) AS found ON TRUE
