-- The chunks of the texts of one catalog's objects, with vectors of one model, each of length 1.
-- Names and types in braces are composed by psycopg.sql.
CREATE TABLE {chunks} (
    zoid      BIGINT NOT NULL,     -- of the object: the same in each relation that the catalog gets
    chunk     INTEGER NOT NULL,    -- its number in the text
    start     INTEGER NOT NULL,    -- from which character of the kept text
    stop      INTEGER NOT NULL,    -- to which
    digest    BYTEA NOT NULL,      -- of what the embedder was sent
    embedding {halfvec}({dimension}) STORAGE PLAIN NOT NULL,
    PRIMARY KEY (zoid, chunk)
);
COMMENT ON TABLE {chunks} IS {about}
