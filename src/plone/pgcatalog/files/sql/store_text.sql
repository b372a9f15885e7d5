-- Stores the text of a file, unless a text of the same bytes was recognised meanwhile.
-- Values: digest and kind (the key), bytes, text, extractor, error, scans.
INSERT INTO pgcatalog_file_texts AS stored (digest, kind, bytes, text, extractor, error, scans)
VALUES (%(digest)s, %(kind)s, %(bytes)s, %(text)s, %(extractor)s, %(error)s, %(scans)s)
ON CONFLICT (digest, kind) DO UPDATE SET
    (text, extractor, error, scans, languages, pages, extracted_at)
    = (EXCLUDED.text, EXCLUDED.extractor, EXCLUDED.error, EXCLUDED.scans, '{}', '{}', now())
    WHERE stored.error <> ''
