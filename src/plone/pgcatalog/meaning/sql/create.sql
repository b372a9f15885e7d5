-- The chunks of the texts of one catalog's objects, with vectors of one model, each of length 1.
-- psycopg.sql composes the names and types in braces.
CREATE TABLE {chunks} (
    zoid      BIGINT NOT NULL,     -- oid of the object: a rebuild of the catalog does not change it
    chunk     INTEGER NOT NULL,    -- number of the chunk in the text, from 0
    start     INTEGER NOT NULL,    -- first character in the stored text
    stop      INTEGER NOT NULL,    -- end in the stored text, exclusive
    digest    BYTEA NOT NULL,      -- of the text that the embedder was sent
    embedding {halfvec}({dimension}) STORAGE PLAIN NOT NULL,
    PRIMARY KEY (zoid, chunk)
)
