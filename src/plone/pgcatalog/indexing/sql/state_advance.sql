-- Advances the generation of a catalog, and returns its state; {unsaved} selects lists that are not saved.
UPDATE pgcatalog_state SET generation = generation + %(changes)s::bigint,
    tid = (SELECT max(tid) FROM transaction_log)
WHERE catalog = %(catalog)s
RETURNING relation, version, columns, generation, complete, interned,
    EXISTS (SELECT FROM pgcatalog_rebuild r WHERE r.catalog = pgcatalog_state.catalog) AS is_rebuilding,
    ARRAY({unsaved}) AS unsaved
