-- Catalogued objects whose file has scanned pages, if {condition} of its text is true, without a job that recognises them.
-- Values: catalog, and those of the condition.
SELECT DISTINCT rows.zoid
FROM pgcatalog_file_texts texts
JOIN pgcatalog_file_blobs known USING (digest, kind)
JOIN object_state b ON (b.zoid, b.tid) = (known.zoid, known.tid)
JOIN object_state f ON f.refs @> ARRAY[b.zoid] AND f.class_mod = 'plone.namedfile.file'
JOIN object_state o ON o.refs @> ARRAY[f.zoid]
JOIN {relation} rows ON rows.zoid = o.zoid
WHERE texts.scans > 0 AND {condition} AND NOT EXISTS (
    SELECT FROM pgcatalog_queue q
    WHERE q.kind = 'scan' AND q.catalog = %(catalog)s AND q.subject = rows.zoid AND q.due < 'infinity')
