-- The stored rows of some paths and oids, with the transactions that wrote the row and its object.
-- Values: the paths, the oids.
SELECT c.rid, c.path, c.zoid, c.xmin::text,
    CASE WHEN o.xmin::text = pg_current_xact_id_if_assigned()::xid::text THEN NULL ELSE o.xmin::text END{values}
FROM {relation} c LEFT JOIN object_state o ON o.zoid = c.zoid
WHERE c.rid IN (
    SELECT rid FROM {relation} WHERE path = ANY(%s::text[])
    UNION SELECT rid FROM {relation} WHERE zoid = ANY(%s::bigint[]))
