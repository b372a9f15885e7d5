-- The path of a row below some paths whose object was stored after a transaction, and not by this one.
-- Values: the paths, the tid of that transaction, the rids of rows that do not count.
SELECT c.path FROM {relation} c
JOIN unnest(%s::text[]) AS above (path) ON c.path > above.path || '/' AND c.path < above.path || '0'
JOIN object_state o ON o.zoid = c.zoid AND o.tid > %s
    AND o.xmin::text IS DISTINCT FROM pg_current_xact_id_if_assigned()::xid::text
WHERE c.rid <> ALL(%s::bigint[]) LIMIT 1
