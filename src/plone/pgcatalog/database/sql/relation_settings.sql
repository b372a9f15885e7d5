-- How autovacuum treats the table of a catalog.
ALTER TABLE {relation} SET (
    -- A count reads no row where VACUUM has noted that all can see it: soon after few of many rows have changed.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02,
    -- A changed row leaves its former text behind.
    toast.autovacuum_vacuum_scale_factor = 0.05,
    toast.autovacuum_vacuum_insert_scale_factor = 0.05
)
