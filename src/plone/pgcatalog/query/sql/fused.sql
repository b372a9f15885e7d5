-- Rows with the words come first; each group is sorted by reciprocal rank fusion: the sum of 1 / ({smoothing} + place).
fused AS MATERIALIZED (
    SELECT coalesce(words.rid, nearest.rid) AS hit, words.rid IS NULL AS is_alone,
        CASE WHEN words.score > {highest} THEN words.score
        ELSE (words.rid IS NOT NULL)::int + coalesce(1.0::float8 / ({smoothing} + words.place), 0) + coalesce(1.0::float8 / ({smoothing} + nearest.place), 0)
        END AS score
    FROM words FULL JOIN nearest ON nearest.rid = words.rid
    WHERE (words.rid IS NOT NULL OR nearest.is_near) AND (SELECT {note}) IS NOT NULL
)
