-- Puts visits of the paths of the live relation that a rebuild has not visited, {slice} paths each.
INSERT INTO pgcatalog_queue (kind, catalog, subject, priority, due, arguments)
SELECT 'visit', %(catalog)s, nextval('pgcatalog_visits'), 3, 'infinity', to_jsonb(jsonb_build_array(NULL, paths)::text)
FROM (
    SELECT jsonb_agg(path) AS paths
    FROM (
        SELECT path, row_number() OVER (ORDER BY path) / {slice} AS part
        FROM {live} l
        WHERE NOT EXISTS (SELECT FROM {relation} n WHERE n.path = l.path)
    ) AS unmet
    GROUP BY part
) AS visits
