"""SQL that counts how often the text of a file is stored."""

#: A trigger that writes down the digest of the file, at each time.
COUNTING = """
CREATE TABLE soak_extractions (digest bytea);
CREATE FUNCTION soak_count() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO soak_extractions VALUES (NEW.digest); RETURN NEW; END $$;
CREATE TRIGGER soak_count AFTER INSERT OR UPDATE ON pgcatalog_file_texts FOR EACH ROW EXECUTE FUNCTION soak_count();
"""
#: Number of files whose text was stored more than once.
TWICE = "SELECT count(*) FROM (SELECT FROM soak_extractions GROUP BY digest HAVING count(*) > 1) AS twice"
