-- The rows of a catalog as people read them; dropped with the table.
CREATE VIEW {view} AS
SELECT c.rid, c.zoid, c.path{columns}, coalesce(c.idx, o.idx) AS idx
FROM {relation} c LEFT JOIN object_state o ON o.zoid = c.zoid
