-- Has the files of failed jobs recognised again that have a text, such as of their first pages.  Value: catalog.
UPDATE pgcatalog_file_texts texts SET languages = '{}'
FROM pgcatalog_queue job
JOIN object_state object ON object.zoid = job.subject
CROSS JOIN unnest(object.refs) AS file_zoid JOIN object_state file ON file.zoid = file_zoid
CROSS JOIN unnest(file.refs) AS blob_zoid JOIN pgcatalog_file_blobs blobs ON blobs.zoid = blob_zoid
WHERE job.kind = 'scan' AND job.catalog = %(catalog)s AND job.due = 'infinity'
    AND texts.error = '' AND (texts.digest, texts.kind) = (blobs.digest, blobs.kind)
