-- Returns (rid, similarity, start, stop) of the chunks nearest to the vector, out of the chunks of all allowed rows.
-- Their order does not consider the bias of long texts, which is subtracted from the similarities of those found.
WITH allowed AS MATERIALIZED (SELECT rid, zoid FROM {source} WHERE {among})
SELECT allowed.rid, near.similarity{near_bias} AS similarity, near.start, near.stop
FROM (
    SELECT zoid, start, stop, -({distance}) AS similarity FROM {chunks}
    WHERE zoid = ANY(ARRAY(SELECT zoid FROM allowed))
    ORDER BY similarity DESC, zoid DESC, start LIMIT {most}
) AS near
JOIN allowed ON allowed.zoid = near.zoid
