-- The number of references to missing objects, and three of these references.
WITH gone AS (
    SELECT o.zoid, o.class_name, ref.zoid AS gone
    FROM object_state o
    CROSS JOIN unnest(o.refs) AS ref (zoid)
    WHERE NOT EXISTS (SELECT FROM object_state t WHERE t.zoid = ref.zoid)
)
SELECT
    (SELECT count(*) FROM gone) AS number,
    ARRAY(
        SELECT format('0x%s (in the %s 0x%s)', to_hex(gone), class_name, to_hex(zoid)) FROM gone ORDER BY zoid, gone LIMIT 3
    ) AS examples
