-- The narrow typed table of one catalog: one row per catalogued path.
-- Names and columns in braces are composed by psycopg.sql.
CREATE TABLE {relation} (
    rid  BIGINT PRIMARY KEY,
    zoid BIGINT{columns},
    path TEXT COLLATE "C" NOT NULL,
    idx  JSONB,
    CONSTRAINT {path_key} UNIQUE (path),
    CONSTRAINT {zoid_fk} FOREIGN KEY (zoid) REFERENCES object_state (zoid) ON DELETE CASCADE
) WITH (toast_tuple_target = 256)
