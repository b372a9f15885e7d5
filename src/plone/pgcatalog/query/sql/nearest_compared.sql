-- Returns (rid, similarity, start, stop) of the nearest rows of "allowed", each with its nearest chunk.  All their chunks are compared.
SELECT allowed.rid, near.similarity, part.start, part.stop
FROM (
    SELECT zoid, -min({distance}){bias} AS similarity FROM {chunks}
    WHERE zoid = ANY(ARRAY(SELECT zoid FROM allowed))
    GROUP BY zoid ORDER BY similarity DESC, zoid DESC LIMIT {rows}
) AS near
JOIN allowed ON allowed.zoid = near.zoid
CROSS JOIN LATERAL (SELECT start, stop FROM {chunks} WHERE zoid = near.zoid ORDER BY {distance}, start LIMIT 1) AS part
