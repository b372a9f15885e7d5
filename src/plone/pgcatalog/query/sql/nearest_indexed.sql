-- Returns (rid, similarity, start, stop).  If few rows are allowed, as nearest_compared.sql; otherwise it scans the HNSW index from
-- the nearest chunk on, until enough chunks belong to allowed rows (hnsw.iterative_scan).  Then a row may have several chunks, and
-- their order does not consider the bias of long texts, which is subtracted from the similarities of those found.
WITH question AS MATERIALIZED (SELECT {vector} AS vector),
few AS MATERIALIZED (SELECT rid, zoid FROM {source} WHERE {among} LIMIT {few} + 1),
counting AS MATERIALIZED (SELECT count(*) > {few} AS are_many FROM few),
allowed AS MATERIALIZED (SELECT rid, zoid FROM few WHERE (SELECT NOT are_many FROM counting))
({compared})
UNION ALL
(
    SELECT allowed.rid, -walked.distance{bias}, walked.start, walked.stop
    FROM (SELECT zoid, start, stop, {distance} AS distance FROM {chunks} ORDER BY distance) AS walked
    CROSS JOIN LATERAL (SELECT rid FROM {source} WHERE zoid = walked.zoid AND ({among}) OFFSET 0) AS allowed
    WHERE (SELECT are_many AND set_config('hnsw.iterative_scan', 'relaxed_order', true) <> ''
        AND set_config('hnsw.ef_search', '{effort}', true) <> '' FROM counting)
    LIMIT {most}
)
