-- The installed version of a profile in each setup tool.
-- Values: the name of the profile.
SELECT tool.zoid, versions.state -> 'data' -> %s -> '@t' ->> 0 AS version
FROM object_state tool
JOIN object_state versions
    ON versions.zoid = ('x' || (tool.state -> '_profile_upgrade_versions' -> '@ref' ->> 0))::bit(64)::bigint
WHERE tool.class_mod = 'Products.GenericSetup.tool' AND tool.class_name = 'SetupTool'
ORDER BY tool.zoid
