-- Catalogued objects with a title that have no chunk and no job.  The embedder is sent at least the title, so a job creates
-- a chunk for each of them.  White space is defined as in Python.
WITH candidates AS MATERIALIZED (
    SELECT rows.zoid, rows.idx FROM {relation} rows
    WHERE rows.zoid IS NOT NULL AND {visible}
        AND NOT EXISTS (SELECT FROM {chunks} chunks WHERE chunks.zoid = rows.zoid)
        AND NOT EXISTS (
            SELECT FROM pgcatalog_queue q WHERE q.kind = 'embed' AND q.catalog = %(catalog)s AND q.subject = rows.zoid)
)
SELECT DISTINCT zoid
FROM candidates
JOIN object_state o USING (zoid)
CROSS JOIN LATERAL (SELECT coalesce(candidates.idx, o.idx) -> 'Title' AS title) AS stored
WHERE jsonb_typeof(title) = 'string'
    AND title #>> '{{}}' ~ '[^[:space:][:cntrl:]\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
