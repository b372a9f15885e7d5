-- Applied once per database by the storage's schema gate (sha256 of this text), never at a restart.
-- What the catalog knows about an object, readable: written in the same row upsert as its state.
ALTER TABLE object_state ADD COLUMN IF NOT EXISTS idx JSONB;

-- One row per catalog: which relation holds its rows now, and how often it has changed.
CREATE TABLE IF NOT EXISTS pgcatalog_state (
    catalog    BIGINT PRIMARY KEY,     -- zoid of the catalog tool
    version    INTEGER NOT NULL,       -- of the relation: a clear or a rebuild points to the next one
    relation   TEXT NOT NULL,
    columns    TEXT[] NOT NULL,        -- typed columns the relation has
    generation BIGINT NOT NULL         -- transactional change counter
);

-- Relations no new snapshot reads; dropped when no old one can need them any more.
CREATE TABLE IF NOT EXISTS pgcatalog_retired (
    relation   TEXT PRIMARY KEY,
    retired_by XID8 NOT NULL DEFAULT pg_current_xact_id()
);

-- History-preserving storages only: which paths a transaction (re)catalogued or removed, so that undoing it can
-- catalogue them anew.  The path '' stands for all of them (a clear).
CREATE TABLE IF NOT EXISTS pgcatalog_changes (
    tid     BIGINT NOT NULL REFERENCES transaction_log (tid) ON DELETE CASCADE,
    catalog BIGINT NOT NULL,
    path    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tid, catalog, path)
);
