-- Each statement that changes rows of {relation} records the changes of their counts; see pgcatalog_counts.  Scripts of
-- pg_dump write rows with an empty search_path.
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $function$
BEGIN
    CASE TG_OP
        WHEN 'INSERT' THEN
            -- Empty if all rows existed: INSERT ...  ON CONFLICT DO UPDATE.
            IF EXISTS (SELECT FROM new_rows) THEN {added}; END IF;
        WHEN 'DELETE' THEN {removed};
        WHEN 'UPDATE' THEN
            IF EXISTS (SELECT {names} FROM new_rows EXCEPT ALL SELECT {names} FROM old_rows) THEN {changed}; END IF;
        ELSE
            DELETE FROM pgcatalog_count_changes WHERE relation = {name};
            DELETE FROM pgcatalog_counts WHERE relation = {name} AND summed IS NOT NULL;
    END CASE;
    RETURN NULL;
END
$function$;
CREATE OR REPLACE TRIGGER pgcatalog_count_insert AFTER INSERT ON {relation}
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {function}();
CREATE OR REPLACE TRIGGER pgcatalog_count_delete AFTER DELETE ON {relation}
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {function}();
CREATE OR REPLACE TRIGGER pgcatalog_count_update AFTER UPDATE ON {relation}
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {function}();
CREATE OR REPLACE TRIGGER pgcatalog_count_truncate AFTER TRUNCATE ON {relation}
    FOR EACH STATEMENT EXECUTE FUNCTION {function}()
