-- Settings of autovacuum for the table of a catalog.
ALTER TABLE {relation} SET (
    -- An index-only count reads no row of a page that VACUUM has marked as visible to all, so VACUUM runs after few of many
    -- rows have changed.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02,
    -- A changed row leaves its former text behind in the TOAST table.
    toast.autovacuum_vacuum_scale_factor = 0.05,
    toast.autovacuum_vacuum_insert_scale_factor = 0.05
)
