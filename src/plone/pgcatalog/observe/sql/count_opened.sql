-- Adds opened hits to the rows of a day, of visitors and of members: a request without cookies does not say which.
UPDATE pgcatalog_searches SET opened = opened + %s WHERE catalog = %s AND day = %s AND words = %s AND opened IS NOT NULL
