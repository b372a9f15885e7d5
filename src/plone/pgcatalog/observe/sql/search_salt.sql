-- The present day and its salt.
INSERT INTO pgcatalog_search_salt AS known DEFAULT VALUES ON CONFLICT (day) DO UPDATE SET salt = known.salt RETURNING day, salt
