-- Puts visits of a rebuild.  Workers do not claim them, because they are never due: the processes of the rebuild take them, in
-- the transaction that writes the visited rows.
-- Values: catalog, visits (texts of JSON: path of a container or null, and ids or paths; jsonb would refuse some odd ids).
INSERT INTO pgcatalog_queue (kind, catalog, subject, priority, due, arguments)
SELECT 'visit', %(catalog)s, nextval('pgcatalog_visits'), 3, 'infinity', to_jsonb(visit) FROM unnest(%(visits)s::text[]) AS visit
