-- Saves the state of a catalog with a new relation.
INSERT INTO pgcatalog_state (catalog, version, relation, columns, generation, tid, complete, interned)
VALUES (%(catalog)s, %(version)s, %(relation)s, %(columns)s, %(generation)s, (SELECT max(tid) FROM transaction_log),
    %(complete)s, %(interned)s)
ON CONFLICT (catalog) DO UPDATE SET version = EXCLUDED.version, relation = EXCLUDED.relation,
    columns = EXCLUDED.columns, generation = EXCLUDED.generation, tid = EXCLUDED.tid,
    complete = EXCLUDED.complete, interned = EXCLUDED.interned
