-- Adds a histogram of slow queries of one kind to the row of the current hour.
INSERT INTO pgcatalog_history AS h (catalog, hour, operation, shape, figures)
VALUES (%s, date_trunc('hour', now(), 'UTC'), %s, %s, %s::bigint[])
ON CONFLICT (catalog, hour, operation, shape) DO UPDATE SET figures = (
    SELECT array_agg(coalesce(n.old, 0) + coalesce(n.new, 0) ORDER BY n.place)
    FROM unnest(h.figures, excluded.figures) WITH ORDINALITY AS n (old, new, place))
