-- An object and the objects that it refers to, directly or indirectly.
-- Values: the oid of the object, oids that are not followed, maximum number of oids.
WITH RECURSIVE part (zoid) AS (
    SELECT %s::bigint
    UNION
    SELECT ref FROM part JOIN object_state USING (zoid), unnest(refs) AS ref WHERE ref <> ALL(%s::bigint[])
)
SELECT zoid FROM part LIMIT %s
