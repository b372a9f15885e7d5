-- Lets the deletion of an object's last row in the relation delete its chunks, too, if the catalog has tables of chunks; see
-- meaning/sql/create.sql.
DO $do$ BEGIN
IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = {name}::regclass AND tgname = 'pgcatalog_chunks' AND tgenabled = 'D') THEN
    ALTER TABLE {relation} ENABLE TRIGGER pgcatalog_chunks;
ELSIF to_regproc('pgcatalog_forget_chunks') IS NOT NULL
    AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = {name}::regclass AND tgname = 'pgcatalog_chunks')
    AND EXISTS (SELECT FROM pgcatalog_vectors
        WHERE starts_with(relation, {prefix}) AND to_regclass(quote_ident(relation)) IS NOT NULL)
THEN
    CREATE CONSTRAINT TRIGGER pgcatalog_chunks AFTER DELETE ON {relation}
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pgcatalog_forget_chunks();
END IF;
END $do$
