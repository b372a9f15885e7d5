-- Content type and text of the file of a catalogued row; no row if its stored text, the source, has none of a file.
-- LIMIT has the planner look up each object by its key.
SELECT texts.kind AS file_kind, texts.text AS file_text
FROM (SELECT {zoid} AS hit_zoid, {source} AS hit_source) AS hit JOIN object_state object ON object.zoid = hit_zoid
CROSS JOIN unnest(object.refs) AS file_zoid JOIN object_state file ON file.zoid = file_zoid
CROSS JOIN unnest(file.refs) AS blob_zoid JOIN object_state blob ON blob.zoid = blob_zoid
JOIN pgcatalog_file_blobs blobs ON (blobs.zoid, blobs.tid) = (blob.zoid, blob.tid)
JOIN pgcatalog_file_texts texts USING (digest)
WHERE strpos(hit_source, E'\f') > 0 AND texts.text <> ''
LIMIT 1
