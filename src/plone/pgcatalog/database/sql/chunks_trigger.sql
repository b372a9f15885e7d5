-- Lets the deletion of an object's last row in the relation delete its chunks, too, if the catalog has tables of chunks; see
-- meaning/sql/create.sql.  A table that waits to be dropped has no comment.
DO $do$ BEGIN
IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = {name}::regclass AND tgname = 'pgcatalog_chunks' AND tgenabled = 'D') THEN
    ALTER TABLE {relation} ENABLE TRIGGER pgcatalog_chunks;
ELSIF to_regproc('pgcatalog_forget_chunks') IS NOT NULL
    AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = {name}::regclass AND tgname = 'pgcatalog_chunks')
    AND EXISTS (SELECT FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relname ~ {pattern}
        AND obj_description(oid, 'pg_class') IS NOT NULL)
THEN
    CREATE CONSTRAINT TRIGGER pgcatalog_chunks AFTER DELETE ON {relation}
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pgcatalog_forget_chunks();
END IF;
END $do$
