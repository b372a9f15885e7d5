-- Retired relations that no snapshot of any session can read any more.  A snapshot older than the retirement has a
-- backend_xmin that is at least as old.  A transaction id that this cluster has not reached yet is of another cluster, whose
-- dump was restored here: such a relation counts as retired now, and is dropped the next time.
WITH renewed AS (
    UPDATE pgcatalog_retired SET retired_by = pg_current_xact_id()
    WHERE retired_by >= pg_snapshot_xmax(pg_current_snapshot())
)
DELETE FROM pgcatalog_retired r
WHERE r.retired_by < pg_snapshot_xmax(pg_current_snapshot())
  AND NOT EXISTS (
    SELECT FROM pg_stat_activity a
    WHERE a.datname = current_database()
      AND a.backend_xmin IS NOT NULL
      AND age(a.backend_xmin) >= age(r.retired_by::xid)
)
RETURNING CASE WHEN to_regclass(quote_ident(r.relation)) IS NOT NULL THEN r.relation END AS relation
