-- Deletes the salts of former days, and the hashes that were made with them.
WITH forgotten AS (DELETE FROM pgcatalog_search_salt WHERE day < current_date)
UPDATE pgcatalog_searches SET hashes = '{}' WHERE day < current_date AND hashes <> '{}'
