-- Objects whose blocks have dicts that zodb-json-codec loads as a class or a call, with the names of these. plone.pgcatalog
-- itself stores calls of three harmless classes.
SELECT o.zoid, concat_ws('.', o.class_mod, o.class_name) AS class_name, o.state ->> 'id' AS id,
       array_agg(DISTINCT array_to_string(ARRAY(SELECT jsonb_array_elements_text(found)), '.')) AS names
FROM object_state o
CROSS JOIN LATERAL jsonb_path_query(o.state, '$.blocks.**."@cls"') AS found
WHERE jsonb_typeof(found) = 'array' AND found NOT IN ('["builtins", "str"]', '["builtins", "float"]', '["builtins", "int"]')
GROUP BY o.zoid
ORDER BY o.zoid
