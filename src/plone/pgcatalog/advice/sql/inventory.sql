-- The SQL indexes of one relation, with their use from pg_stat_user_indexes.
SELECT c.relname AS name,
    regexp_replace(pg_get_indexdef(i.indexrelid), '^.*? USING ', 'USING ') AS definition,
    am.amname AS method,
    ARRAY(SELECT coalesce(a.attname, '') FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
          LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
          WHERE k.place <= i.indnkeyatts ORDER BY k.place)::text[] AS keys,
    ARRAY(SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
          WHERE k.place > i.indnkeyatts ORDER BY k.place)::text[] AS included,
    coalesce(pg_get_expr(i.indpred, i.indrelid), '') AS predicate,
    i.indisunique AS is_unique, i.indisvalid AS is_valid,
    pg_relation_size(i.indexrelid) AS bytes, coalesce(s.idx_scan, 0) AS scans,
    coalesce(obj_description(i.indexrelid, 'pg_class'), '') AS comment,
    -- Includes the columns of its expressions and its predicate.
    ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum > 0
          AND (a.attnum = ANY(i.indkey::int2[]) OR EXISTS (
              SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
              AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid = a.attnum))
          ORDER BY a.attnum)::text[] AS columns
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am am ON am.oid = c.relam
LEFT JOIN pg_stat_user_indexes s ON s.indexrelid = i.indexrelid
WHERE i.indrelid = to_regclass(%(relation)s)
ORDER BY c.relname
