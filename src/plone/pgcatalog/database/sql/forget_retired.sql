-- Retired relations that no snapshot of any session can still read.
-- A snapshot older than the retirement has a backend_xmin that is at least as old.
DELETE FROM pgcatalog_retired r
WHERE NOT EXISTS (
    SELECT FROM pg_stat_activity a
    WHERE a.datname = current_database()
      AND a.backend_xmin IS NOT NULL
      AND age(a.backend_xmin) >= age(r.retired_by::xid)
)
RETURNING CASE WHEN to_regclass(quote_ident(r.relation)) IS NOT NULL THEN r.relation END AS relation
