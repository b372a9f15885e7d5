-- Records the blobs of an object's files that have no digest yet, as files without a text.
-- Values: zoid of the object, digest of the empty string, names of the classes of files.
WITH others AS MATERIALIZED (
    SELECT blob.zoid, blob.tid
    FROM object_state object CROSS JOIN unnest(object.refs) AS file_zoid JOIN object_state file ON file.zoid = file_zoid
    CROSS JOIN unnest(file.refs) AS blob_zoid JOIN object_state blob ON blob.zoid = blob_zoid
    WHERE object.zoid = %(zoid)s AND file.class_mod = 'plone.namedfile.file' AND file.class_name = ANY(%(classes)s)
        AND (blob.class_mod, blob.class_name) = ('ZODB.blob', 'Blob')
        AND NOT EXISTS (SELECT FROM pgcatalog_file_blobs known WHERE (known.zoid, known.tid) = (blob.zoid, blob.tid))
), nothing AS (
    INSERT INTO pgcatalog_file_texts (digest, kind, bytes, text, extractor, error)
    SELECT %(digest)s, '', 0, '', '', '' WHERE EXISTS (TABLE others) ON CONFLICT DO NOTHING
)
INSERT INTO pgcatalog_file_blobs (zoid, tid, digest, kind) SELECT zoid, tid, %(digest)s, '' FROM others ON CONFLICT DO NOTHING
