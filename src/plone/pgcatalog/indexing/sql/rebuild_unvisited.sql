-- Adds tasks with the paths of the live relation that a rebuild has not visited, {slice} paths each.
INSERT INTO pgcatalog_rebuild_task (catalog, task)
SELECT %(catalog)s, json_build_array(NULL, json_agg(path))::text
FROM (
    SELECT path, row_number() OVER (ORDER BY path) / {slice} AS part
    FROM {live} l
    WHERE NOT EXISTS (SELECT FROM {relation} n WHERE n.path = l.path)
) AS unmet
GROUP BY part
