-- Catalogued objects with a file in a blob that has no text and no job, and the content type of the file.
WITH files AS (
    SELECT f.zoid, f.state ->> 'contentType' AS kind
    FROM object_state f
    CROSS JOIN unnest(f.refs) AS ref
    JOIN object_state b ON b.zoid = ref AND (b.class_mod, b.class_name) = ('ZODB.blob', 'Blob')
    WHERE (f.class_mod, f.class_name) = ('plone.namedfile.file', 'NamedBlobFile')
        AND NOT EXISTS (SELECT FROM pgcatalog_file_blobs known WHERE (known.zoid, known.tid) = (b.zoid, b.tid))
)
SELECT DISTINCT rows.zoid, files.kind
FROM files
JOIN object_state o ON o.refs @> ARRAY[files.zoid]
JOIN {relation} rows ON rows.zoid = o.zoid
WHERE NOT EXISTS (
    SELECT FROM pgcatalog_queue q WHERE q.kind = 'text' AND q.catalog = %(catalog)s AND q.subject = rows.zoid)
