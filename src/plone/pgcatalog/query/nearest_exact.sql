-- The chunks nearest to the vector, of all objects whose rows are allowed: rid, similarity, start, stop.
WITH allowed AS MATERIALIZED (SELECT rid, zoid FROM {source} WHERE {among})
SELECT allowed.rid, near.similarity, near.start, near.stop
FROM (
    SELECT zoid, start, stop, -({distance}) AS similarity FROM {chunks}
    WHERE zoid = ANY(ARRAY(SELECT zoid FROM allowed))
    ORDER BY similarity DESC, zoid DESC, start LIMIT {most}
) AS near
JOIN allowed ON allowed.zoid = near.zoid
