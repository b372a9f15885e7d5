-- Deletes the chunks of an object together with its last row.  The trigger is deferred, since a move deletes the old row first.
-- The tables of chunks are looked up by name, since a restored dump may lack them.
CREATE OR REPLACE FUNCTION pgcatalog_forget_chunks() RETURNS trigger LANGUAGE plpgsql AS $function$
DECLARE
    is_there BOOLEAN;
    chunks TEXT;
BEGIN
    EXECUTE format('SELECT EXISTS (SELECT FROM %I.%I WHERE zoid = $1)', TG_TABLE_SCHEMA, TG_TABLE_NAME)
        INTO is_there USING OLD.zoid;
    IF NOT is_there THEN
        FOR chunks IN SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = TG_TABLE_SCHEMA AND c.relkind = 'r'
            AND c.relname ~ ('^' || substring(TG_TABLE_NAME FROM '^pgcatalog_[0-9a-f]+') || '_chunks_[0-9]+$')
        LOOP
            EXECUTE format('DELETE FROM %I.%I WHERE zoid = $1', TG_TABLE_SCHEMA, chunks) USING OLD.zoid;
        END LOOP;
    END IF;
    RETURN NULL;
END
$function$
