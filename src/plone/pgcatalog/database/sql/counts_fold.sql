-- Adds the changes of counts of a relation to its counts; returns the places of counts that became 0.
-- Values: the relation, twice.
WITH gone AS (
    DELETE FROM pgcatalog_count_changes WHERE relation = %s
    RETURNING allowed_roles, portal_type, fields, vals, n
), folded AS (
    INSERT INTO pgcatalog_counts AS c (relation, summed, allowed_roles, portal_type, field, value, n)
    SELECT %s, GROUPING(allowed_roles, portal_type), allowed_roles, portal_type, field, value, sum(n)
    FROM gone CROSS JOIN LATERAL unnest(fields, vals) AS v (field, value)
    GROUP BY GROUPING SETS ((field, value, allowed_roles, portal_type), (field, value, portal_type), (field, value))
    HAVING sum(n) <> 0
    ON CONFLICT (relation, summed, allowed_roles, portal_type, field, value) DO UPDATE SET n = c.n + EXCLUDED.n
    RETURNING c.ctid, n
)
SELECT ctid::text FROM folded WHERE n = 0
