-- The number of rows that match {where}, at most {bound} + 1, and the rids of the newest {size} of them.
-- If more than {bound} rows match: of the newest {walked} of them, if these are among the newest {rows} rows.
WITH hits AS MATERIALIZED (SELECT rid FROM {relation} WHERE {where}),
few AS MATERIALIZED (SELECT rid FROM hits LIMIT {more_than_bound:d}),
counting AS MATERIALIZED (SELECT count(*) AS counted FROM few),
walked AS MATERIALIZED (SELECT rid FROM (SELECT * FROM {relation} ORDER BY rid DESC LIMIT {rows:d}) AS newest
    WHERE (SELECT counted > {bound:d} FROM counting) AND {where} LIMIT {walked:d})
SELECT counted,
    CASE WHEN counted <= {bound:d} THEN ARRAY(SELECT rid FROM few ORDER BY rid DESC LIMIT {size:d})
    WHEN (SELECT count(*) FROM walked) = {walked:d} THEN ARRAY(SELECT rid FROM walked)
    ELSE ARRAY(SELECT rid FROM hits ORDER BY rid DESC LIMIT {size:d}) END AS rids
FROM counting
