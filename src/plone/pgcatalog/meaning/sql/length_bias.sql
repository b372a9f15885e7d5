-- The number of pages in a sample of the chunks, and the slope of their similarities to the questions as a function of ln(chunks).
WITH question AS MATERIALIZED (
    SELECT number, vector::{halfvec} AS vector FROM unnest(%(vectors)s::text[]) WITH ORDINALITY AS given(vector, number)
), page AS (SELECT DISTINCT zoid FROM {chunks} TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (0) LIMIT %(pages)s)
SELECT count(DISTINCT zoid), regr_slope(similarity, ln(chunks)) FROM (
    SELECT zoid, count(*) AS chunks, max(-(embedding {distance} vector)) AS similarity
    FROM page JOIN {chunks} USING (zoid) CROSS JOIN question GROUP BY zoid, number
) AS nearest
