-- The narrow typed table of one catalog: one row per catalogued path.
-- Names and columns in braces are composed by psycopg.sql.
CREATE TABLE {relation} (
    rid  BIGINT PRIMARY KEY,
    path TEXT COLLATE "C" NOT NULL,
    zoid BIGINT,
    idx  JSONB{columns},
    CONSTRAINT {path_key} UNIQUE (path),
    CONSTRAINT {zoid_fk} FOREIGN KEY (zoid) REFERENCES object_state (zoid) ON DELETE CASCADE
) WITH (toast_tuple_target = 256)
