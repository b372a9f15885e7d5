-- Paths whose row, or object, was written by a transaction or a later one; all paths, if the server has not reached that
-- number yet.
SELECT c.path
FROM {relation} c
LEFT JOIN object_state o ON o.zoid = c.zoid
WHERE age(c.xmin) <= age(%(xid)s::xid8::xid)
   OR age(o.xmin) <= age(%(xid)s::xid8::xid)
   OR %(xid)s::xid8 > pg_snapshot_xmax(pg_current_snapshot())
