-- Returns the same as nearest_exact.sql.  If few rows are allowed, it compares all their chunks; otherwise it scans the HNSW
-- index from the nearest chunk on, until enough chunks belong to allowed rows (hnsw.iterative_scan).
WITH few AS MATERIALIZED (SELECT rid, zoid FROM {source} WHERE {among} LIMIT {few} + 1),
counting AS MATERIALIZED (SELECT count(*) > {few} AS are_many FROM few)
(
    SELECT few.rid, near.similarity{near_bias} AS similarity, near.start, near.stop
    FROM (
        SELECT zoid, start, stop, -({distance}) AS similarity FROM {chunks}
        WHERE (SELECT NOT are_many FROM counting) AND zoid = ANY(ARRAY(SELECT zoid FROM few))
        ORDER BY similarity DESC, zoid DESC, start LIMIT {most}
    ) AS near
    JOIN few ON few.zoid = near.zoid
)
UNION ALL
(
    SELECT allowed.rid, -walked.distance{walked_bias}, walked.start, walked.stop
    FROM (SELECT zoid, start, stop, {distance} AS distance FROM {chunks} ORDER BY distance) AS walked
    CROSS JOIN LATERAL (SELECT rid FROM {source} WHERE zoid = walked.zoid AND ({among}) OFFSET 0) AS allowed
    WHERE (SELECT are_many AND set_config('hnsw.iterative_scan', 'relaxed_order', true) <> ''
        AND set_config('hnsw.ef_search', '{effort}', true) <> '' FROM counting)
    LIMIT {most}
)
