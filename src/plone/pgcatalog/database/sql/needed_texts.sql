-- Catalogued objects with a file in a blob that has no text and no job, and the content type and the name of the file.
-- Values: catalog, the classes of files, and the name of an extractor: failures of other extractors count as files without a text; or NULL.
WITH files AS (
    SELECT f.zoid, f.state ->> 'contentType' AS kind, f.state ->> 'filename' AS name, known.zoid IS NOT NULL AS has_failed
    FROM object_state f
    CROSS JOIN unnest(f.refs) AS ref
    JOIN object_state b ON b.zoid = ref AND (b.class_mod, b.class_name) = ('ZODB.blob', 'Blob')
    LEFT JOIN pgcatalog_file_blobs known ON (known.zoid, known.tid) = (b.zoid, b.tid)
    WHERE f.class_mod = 'plone.namedfile.file' AND f.class_name = ANY(%(classes)s)
        AND (known.zoid IS NULL OR EXISTS (
            SELECT FROM pgcatalog_file_texts texts
            WHERE (texts.digest, texts.kind) = (known.digest, known.kind)
                AND texts.error <> '' AND texts.extractor <> %(extractor)s::text))
)
SELECT DISTINCT rows.zoid, files.kind, files.name
FROM files
JOIN object_state o ON o.refs @> ARRAY[files.zoid]
JOIN {relation} rows ON rows.zoid = o.zoid
WHERE NOT EXISTS (
    SELECT FROM pgcatalog_queue q
    WHERE q.kind = 'text' AND q.catalog = %(catalog)s AND q.subject = rows.zoid
        AND NOT (files.has_failed AND q.due = 'infinity'))
