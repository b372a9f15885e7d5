-- Saves the state of a catalog with a new relation.
INSERT INTO pgcatalog_state
    (catalog, version, relation, columns, generation, tid, complete_at, complete, interned, collected)
VALUES (%(catalog)s, %(version)s, %(relation)s, %(columns)s, %(generation)s, (SELECT max(tid) FROM transaction_log),
    %(generation)s, %(complete)s, %(interned)s, %(collected)s)
ON CONFLICT (catalog) DO UPDATE SET version = EXCLUDED.version, relation = EXCLUDED.relation,
    columns = EXCLUDED.columns, generation = EXCLUDED.generation, tid = EXCLUDED.tid,
    complete_at = EXCLUDED.complete_at, complete = EXCLUDED.complete, interned = EXCLUDED.interned,
    collected = EXCLUDED.collected
