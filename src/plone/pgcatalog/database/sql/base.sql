-- The tables that all catalogs of a database share.
--
-- The storage runs this text once, and again if the text has changed (it compares a SHA-256).  At the start of Zope,
-- database/restored.py runs it if a part is missing.  So each statement may run on tables that exist.
--
-- CREATE TABLE IF NOT EXISTS adds no column to a table that exists.  A later version of the package adds a column by
-- ALTER TABLE ... ADD COLUMN IF NOT EXISTS behind that table; database/expected.py reads both forms.


-- ---- Before missing tables are recreated: delete rows that are wrong without them, after a partial restore of a dump

-- Counts are wrong without their pending changes.
DO $$ BEGIN
    IF to_regclass('pgcatalog_count_changes') IS NULL AND to_regclass('pgcatalog_counts') IS NOT NULL
    THEN DELETE FROM pgcatalog_counts; END IF;
END $$;

-- A rebuild without its visits, or without the changes that it has to replay, would end before its relation is complete.
DO $$ BEGIN
    IF to_regclass('pgcatalog_rebuild') IS NOT NULL
        AND (to_regclass('pgcatalog_queue') IS NULL OR to_regclass('pgcatalog_rebuild_change') IS NULL)
    THEN DELETE FROM pgcatalog_rebuild; END IF;
END $$;


-- ---- Objects

-- Indexed values and metadata of an object as readable JSON, written in the same upsert as its state.  This is an ALTER
-- because the storage creates the table object_state.
ALTER TABLE object_state ADD COLUMN IF NOT EXISTS idx JSONB;


-- ---- Catalogs

-- One row per catalog: the relation that holds its rows now, and the number of its changes.
CREATE TABLE IF NOT EXISTS pgcatalog_state (
    catalog    BIGINT PRIMARY KEY,             -- zoid of the catalog tool
    version    INTEGER NOT NULL,               -- of the relation: a clear or a rebuild switches to the next one
    relation   TEXT NOT NULL,
    columns    TEXT[] NOT NULL,                -- typed columns of the relation
    generation BIGINT NOT NULL,                -- transactional change counter
    -- The transaction that wrote the row last.  Generations are assigned again when a failover or a restored backup has lost
    -- transactions; ids of transactions are times and are not reused.
    tid        BIGINT NOT NULL DEFAULT 0,
    complete   TEXT[] NOT NULL DEFAULT '{}',   -- columns with a value in every row: searches need no IS NOT NULL for them
    interned   TEXT[] NOT NULL DEFAULT '{}',   -- columns that hold numbers of lists in pgcatalog_sets instead of the lists
    -- The parts that the relation was created with: name of an SQL index, a constraint or a trigger -> the line that
    -- recreates it.
    made       JSONB NOT NULL DEFAULT '{}'
);

-- Lists of keywords that rows of catalogs share.
CREATE TABLE IF NOT EXISTS pgcatalog_sets (
    number BIGINT PRIMARY KEY,                          -- a hash of name and list
    added  BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,  -- ascends in the order of commits
    name   TEXT COLLATE "C" NOT NULL,                   -- of the column
    vals   TEXT[] COLLATE "C" NOT NULL
);
CREATE INDEX IF NOT EXISTS pgcatalog_sets_vals ON pgcatalog_sets USING gin (vals) WITH (fastupdate = off);
CREATE INDEX IF NOT EXISTS pgcatalog_sets_name ON pgcatalog_sets (name, added);

-- How many rows of a catalog's relation have a value: by roles and type, by type, and in total.
CREATE TABLE IF NOT EXISTS pgcatalog_counts (
    relation      TEXT COLLATE "C" NOT NULL,
    summed        SMALLINT,                   -- 0: by both; 2: by type; 3: in total; NULL: marks a counted field
    allowed_roles BIGINT,                     -- number of a list in pgcatalog_sets
    portal_type   TEXT COLLATE "C",
    field         TEXT COLLATE "C" NOT NULL,  -- a column; '' for the rows themselves
    value         TEXT COLLATE "C" NOT NULL,
    n             INTEGER NOT NULL,
    UNIQUE NULLS NOT DISTINCT (relation, summed, allowed_roles, portal_type, field, value)
) WITH (fillfactor = 90);

-- Pending changes of counts: one row has all values of the same roles and type that have changed by n rows.
CREATE TABLE IF NOT EXISTS pgcatalog_count_changes (
    relation      TEXT COLLATE "C" NOT NULL,
    allowed_roles BIGINT,
    portal_type   TEXT COLLATE "C",
    fields        TEXT[] COLLATE "C" NOT NULL,
    vals          TEXT[] COLLATE "C" NOT NULL,
    n             INTEGER NOT NULL
);

-- Data of a dump, restored while triggers count its rows, contains counts as well: these are ignored.
CREATE OR REPLACE FUNCTION pgcatalog_not_taken() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE OR REPLACE TRIGGER pgcatalog_counted BEFORE INSERT ON pgcatalog_counts FOR EACH ROW
    WHEN (NEW.summed IS NOT NULL AND current_setting('pgcatalog.counting', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION pgcatalog_not_taken();
CREATE OR REPLACE TRIGGER pgcatalog_counted BEFORE INSERT ON pgcatalog_count_changes FOR EACH ROW
    WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION pgcatalog_not_taken();

-- Relations that no new snapshot reads; dropped when no old snapshot can read them any more.
CREATE TABLE IF NOT EXISTS pgcatalog_retired (
    relation   TEXT PRIMARY KEY,
    retired_by XID8 NOT NULL DEFAULT pg_current_xact_id()
);

-- History-preserving storages only: the paths that a transaction has (re)catalogued or removed, so that undoing it can
-- catalogue them anew.
CREATE TABLE IF NOT EXISTS pgcatalog_changes (
    tid     BIGINT NOT NULL REFERENCES transaction_log (tid) ON DELETE CASCADE,
    catalog BIGINT NOT NULL,
    path    TEXT COLLATE "C" NOT NULL,  -- '' stands for all paths (a clear)
    PRIMARY KEY (tid, catalog, path)
);


-- ---- Rebuilds

-- One row per catalog that is being rebuilt beside the live one: the relation that is being filled, and its progress.
CREATE TABLE IF NOT EXISTS pgcatalog_rebuild (
    catalog   BIGINT PRIMARY KEY,
    relation  TEXT NOT NULL,
    version   INTEGER NOT NULL,
    columns   TEXT[] NOT NULL,
    interned  TEXT[] NOT NULL,         -- as in pgcatalog_state
    signature TEXT NOT NULL,           -- of the columns; other ones need another relation
    phase     TEXT NOT NULL,           -- walk, rest, index, replay
    total     BIGINT NOT NULL,         -- rows of the live relation at the start
    done      BIGINT NOT NULL DEFAULT 0,
    started   TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);

-- Paths that commits have catalogued or removed since the rebuild began.
CREATE TABLE IF NOT EXISTS pgcatalog_rebuild_change (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    catalog BIGINT NOT NULL REFERENCES pgcatalog_rebuild (catalog) ON DELETE CASCADE,
    path    TEXT COLLATE "C" NOT NULL  -- '' stands for all paths
);
CREATE INDEX IF NOT EXISTS pgcatalog_rebuild_change_path ON pgcatalog_rebuild_change (catalog, path);


-- ---- Records of searches, and advice

-- Slow searches; written by a thread of its own, outside of the searching transactions.
CREATE TABLE IF NOT EXISTS pgcatalog_slow_queries (
    id              BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recorded_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    catalog         BIGINT NOT NULL,            -- zoid of the catalog tool
    path            TEXT NOT NULL,              -- of the catalog tool
    operation       TEXT NOT NULL,              -- kind of request: page, count, rids ...
    shape           TEXT NOT NULL,              -- the query without its values
    query           JSONB NOT NULL,             -- query, sort and limit, values as in idx
    left_out        TEXT[] NOT NULL,            -- indexes whose values were not stored
    total_ms        DOUBLE PRECISION NOT NULL,
    embed_ms        DOUBLE PRECISION NOT NULL,  -- waiting for the embedder
    compile_ms      DOUBLE PRECISION NOT NULL,
    execute_ms      DOUBLE PRECISION NOT NULL,
    decode_ms       DOUBLE PRECISION NOT NULL,
    result_rows     INTEGER NOT NULL,
    statement       TEXT NOT NULL,              -- with placeholders
    page            TEXT NOT NULL,              -- path of the requested URL; '' outside of requests
    cold            TEXT NOT NULL,              -- the statement was the first of its 'process' or 'connection'; or ''
    process_started TIMESTAMPTZ NOT NULL,
    plan            JSONB                       -- figures of EXPLAIN, for one search per hour, shape and process
);

-- One row per hour: how many slow queries a shape had, and how large a catalog was.  Stays when single queries are deleted.
CREATE TABLE IF NOT EXISTS pgcatalog_history (
    catalog   BIGINT NOT NULL,         -- zoid of the catalog tool
    hour      TIMESTAMPTZ NOT NULL,
    operation TEXT NOT NULL,           -- as of a slow query; '' for the sizes of the catalog
    shape     TEXT NOT NULL,           -- as of a slow query
    figures   BIGINT[] NOT NULL,       -- queries by how long they took; or rows, bytes of table and indexes, generation
    PRIMARY KEY (catalog, hour, operation, shape)
);

-- SQL indexes that were created on advice; a relation that replaces another one gets them, too.
CREATE TABLE IF NOT EXISTS pgcatalog_indexes (
    catalog    BIGINT NOT NULL,           -- zoid of the catalog tool
    name       TEXT NOT NULL,             -- suffix to the name of the relation
    definition TEXT NOT NULL,             -- clause behind ON table
    columns    TEXT[] NOT NULL,           -- required in the relation
    reason     TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (catalog, name)
);

-- The search terms of visitors and of members, by day; written by a thread of its own, outside of the searching transactions.
CREATE TABLE IF NOT EXISTS pgcatalog_searches (
    catalog         BIGINT NOT NULL,            -- zoid of the catalog tool
    day             DATE NOT NULL DEFAULT current_date,
    by_members      BOOLEAN NOT NULL DEFAULT FALSE,
    words           TEXT COLLATE "C" NOT NULL,
    searches        BIGINT NOT NULL,
    without_results BIGINT NOT NULL,            -- of these searches
    corrected       BIGINT NOT NULL DEFAULT 0,  -- number of times that the words were replaced by a correction
    correction      TEXT NOT NULL DEFAULT '',   -- the last one
    opened          BIGINT,                     -- number of hits that were opened; NULL if they are not counted
    tsquery         TEXT NOT NULL DEFAULT '',   -- the words in the lexicon of the site, for suggestions; '' without them
    people          SMALLINT NOT NULL DEFAULT 0,  -- number of different members, 3 for more
    hashes          BYTEA[] NOT NULL DEFAULT '{}',  -- one for each of these members, until the end of the day
    PRIMARY KEY (catalog, day, by_members, words)
);
CREATE INDEX IF NOT EXISTS pgcatalog_searches_words ON pgcatalog_searches (catalog, words);

-- The secret of the hashes of a day, deleted with them.
CREATE TABLE IF NOT EXISTS pgcatalog_search_salt (
    day  DATE PRIMARY KEY DEFAULT current_date,
    salt UUID NOT NULL DEFAULT gen_random_uuid()
);


-- ---- Words

-- Counts in the form of an earlier version, or in an incomplete set of tables after a partial restore: counted again.
DO $$ BEGIN
    IF to_regclass('pgcatalog_words') IS NULL OR to_regclass('pgcatalog_spellings') IS NULL
        OR to_regclass('pgcatalog_texts') IS NULL
    THEN DROP TABLE IF EXISTS pgcatalog_words, pgcatalog_spellings, pgcatalog_texts; END IF;
END $$;

-- The documents in which the words of a text index were counted, from time to time, outside of requests and commits.
CREATE TABLE IF NOT EXISTS pgcatalog_texts (
    catalog       BIGINT NOT NULL,            -- zoid of the catalog tool
    text_column   TEXT COLLATE "C" NOT NULL,  -- the tsvector of the text index
    number        INTEGER GENERATED ALWAYS AS IDENTITY UNIQUE,  -- of the text index, in the tables of words
    documents     BIGINT NOT NULL,
    average_words DOUBLE PRECISION NOT NULL,  -- of a document
    generation    BIGINT NOT NULL,            -- of the catalog when counting began
    counted_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    relation      TEXT NOT NULL,              -- the counted one
    counted_from  XID8 NOT NULL,              -- rows written by this or a later transaction may have other words
    counted_by    XID8 NOT NULL,              -- the transaction that wrote this row
    PRIMARY KEY (catalog, text_column)
);

-- The number of documents that contain a word or stem, if there are two or more.
CREATE TABLE IF NOT EXISTS pgcatalog_words (
    text_number INTEGER NOT NULL,           -- of a row of pgcatalog_texts
    documents   INTEGER NOT NULL,
    word        TEXT COLLATE "C" NOT NULL,  -- a stem begins with chr(2), which no word of a text contains
    PRIMARY KEY (text_number, word)
);
-- For the most frequent words with a first letter, without reading all such words.
CREATE INDEX IF NOT EXISTS pgcatalog_words_beginning
ON pgcatalog_words (text_number, left(word, 1), documents DESC, word) WHERE documents >= 10;

-- All words of a text index without its stems, in blocks of about sixteen: most words are rare, and a row for each would be
-- several times as large as the word.  A block begins at a word with a certain hash, so other words do not move it.
CREATE TABLE IF NOT EXISTS pgcatalog_spellings (
    text_number INTEGER NOT NULL,           -- of a row of pgcatalog_texts
    first       TEXT COLLATE "C" NOT NULL,  -- the first word
    words       TEXT COLLATE "C" NOT NULL,  -- in their order, with chr(2) between them
    PRIMARY KEY (text_number, first)
);

-- The variants of a word with one letter less, among its first six letters, and the word if it has fewer: two words with one
-- edit between them have a variant in common (the symmetric deletions of SymSpell, on prefixes).  The caller compares the
-- rest of the words.
CREATE OR REPLACE FUNCTION pgcatalog_deletions(word TEXT) RETURNS TEXT[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT array_agg(left(p, i - 1) || substr(p, i + 1)) || CASE WHEN length(p) < 6 THEN ARRAY[p] END
    FROM (SELECT left(word, 6)) AS prefix (p), generate_series(1, length(p)) AS i GROUP BY p
);
-- The hashes of all deletions of the words of a block, with 14 bits: the index has few keys, each with many blocks.  Pairs of
-- Chinese, Japanese and Korean characters, into which texts are split, are left out: they are never corrected.
CREATE OR REPLACE FUNCTION pgcatalog_near_keys(words TEXT) RETURNS INTEGER[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT coalesce(array_agg(DISTINCT hashtext(deletion) & 16383), '{}')
    FROM (SELECT DISTINCT left(word, 6) COLLATE "C" FROM unnest(string_to_array(words, chr(2))) AS word) AS heads (head),
        unnest(pgcatalog_deletions(head)) AS deletion
    WHERE length(head) > 2 OR ascii(head) < 11904
);
CREATE INDEX IF NOT EXISTS pgcatalog_spellings_near ON pgcatalog_spellings USING gin (pgcatalog_near_keys(words))
WITH (fastupdate = off);
-- Their statistics would cost as much as the count of words, and say no more than the default.
ALTER INDEX pgcatalog_spellings_near ALTER COLUMN 1 SET STATISTICS 0;

-- The words of a text index from one to below another, and their numbers of documents.  The planner inlines it, and reads no
-- numbers if they are not used.  There are no joins: with their estimates the planner would read all words.
CREATE OR REPLACE FUNCTION pgcatalog_spelled(of_catalog BIGINT, of_column TEXT, from_word TEXT, to_word TEXT)
RETURNS TABLE (word TEXT, documents INTEGER) LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT spelled.word, coalesce((
        SELECT w.documents FROM pgcatalog_words w WHERE w.text_number = s.text_number AND w.word = spelled.word
    ), 1)
    FROM pgcatalog_spellings s CROSS JOIN LATERAL unnest(string_to_array(s.words, chr(2))) AS spelled (word)
    WHERE s.text_number = (SELECT number FROM pgcatalog_texts WHERE catalog = of_catalog AND text_column = of_column)
        AND s.first < to_word
        AND s.first >= coalesce((
            SELECT max(b.first) FROM pgcatalog_spellings b
            WHERE b.first <= from_word AND b.text_number = (
                SELECT number FROM pgcatalog_texts WHERE catalog = of_catalog AND text_column = of_column
            )
        ), '')
        AND spelled.word COLLATE "C" >= from_word AND spelled.word COLLATE "C" < to_word
$$;


-- ---- Work outside of requests

-- All work outside of requests: one row per kind of work and subject.  A worker claims a job by postponing its due time; a job
-- due at infinity is not claimed again.  The lowest priority is claimed first.
CREATE TABLE IF NOT EXISTS pgcatalog_queue (
    kind      TEXT COLLATE "C" NOT NULL,
    catalog   BIGINT NOT NULL,          -- zoid of the catalog tool
    subject   BIGINT NOT NULL,          -- zoid of the object; that of the tool for the whole catalog; or the kind's own number
    priority  SMALLINT NOT NULL,        -- 0 text and 1 other jobs of a save, 2 text and 3 other jobs of a backfill, 4 scans
    put_by    XID8 NOT NULL DEFAULT pg_current_xact_id(),
    put_at    TIMESTAMPTZ NOT NULL DEFAULT now(),
    due       TIMESTAMPTZ NOT NULL DEFAULT now(),
    attempts  INTEGER NOT NULL DEFAULT 0,
    reason    TEXT NOT NULL DEFAULT '', -- why the last attempt has failed
    is_empty  BOOLEAN NOT NULL DEFAULT false, -- the last attempt has worked, and found nothing
    arguments JSONB,                    -- of the kind
    -- Of long jobs only:
    done      BIGINT,
    total     BIGINT,
    message   TEXT,                     -- current step, or result
    stop      BOOLEAN,                  -- true: a user has requested its end
    finished  TIMESTAMPTZ,
    PRIMARY KEY (kind, catalog, subject)
);
CREATE INDEX IF NOT EXISTS pgcatalog_queue_due ON pgcatalog_queue (due);
CREATE INDEX IF NOT EXISTS pgcatalog_queue_priority ON pgcatalog_queue (priority, due) WHERE due < 'infinity';
-- Numbers of the visits of a rebuild, in the order in which they are added.
CREATE SEQUENCE IF NOT EXISTS pgcatalog_visits;

-- True.  The cost is that of comparing a stored text, which PostgreSQL's planner takes for as cheap as comparing numbers.
CREATE OR REPLACE FUNCTION pgcatalog_compared(rid BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 400 AS 'BEGIN RETURN true; END';

-- The session that does a long job holds its lock, which ends with the session at the latest.  The first key is "pgcj".
CREATE OR REPLACE FUNCTION pgcatalog_lock_job(kind TEXT, catalog BIGINT, subject BIGINT) RETURNS BOOLEAN
LANGUAGE sql VOLATILE
RETURN pg_try_advisory_lock(1885823850, hashtext(concat_ws(' ', kind, catalog, subject)));
-- The process id of that session; NULL if there is none.
CREATE OR REPLACE FUNCTION pgcatalog_session_of_job(kind TEXT, catalog BIGINT, subject BIGINT) RETURNS INTEGER
LANGUAGE sql STABLE
RETURN (
    SELECT min(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND classid = 1885823850::oid
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND objid::bigint = (hashtext(concat_ws(' ', kind, catalog, subject))::bigint & 4294967295)
);

-- Texts of files, by the SHA-256 of their bytes and their content type.
CREATE TABLE IF NOT EXISTS pgcatalog_file_texts (
    digest       BYTEA NOT NULL,
    kind         TEXT NOT NULL,            -- content type, by the bytes, the name and what the upload said
    bytes        BIGINT NOT NULL,          -- of the file
    text         TEXT NOT NULL,
    extractor    TEXT NOT NULL,            -- with its version
    error        TEXT NOT NULL,            -- why there is no text
    scans        INTEGER NOT NULL DEFAULT 0,  -- pages that are pictures and have no text
    languages    TEXT[] NOT NULL DEFAULT '{}', -- of Tesseract, which has recognised them
    pages        TEXT[] NOT NULL DEFAULT '{}', -- texts of the first scans, while not all are recognised
    extracted_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (digest, kind)
);

-- The texts of blobs.
CREATE TABLE IF NOT EXISTS pgcatalog_file_blobs (
    zoid   BIGINT NOT NULL,                -- of the blob
    tid    BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    kind   TEXT NOT NULL,
    PRIMARY KEY (zoid, tid),
    FOREIGN KEY (digest, kind) REFERENCES pgcatalog_file_texts ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS pgcatalog_file_blobs_text ON pgcatalog_file_blobs (digest, kind);

-- Content type and text of the file of an object, no row if there is no text.  Functions, because their plans are cached: most
-- pages of hits have no file, and planning the statements takes longer than reading such a page.
CREATE OR REPLACE FUNCTION pgcatalog_file(object BIGINT) RETURNS TABLE (kind TEXT, text TEXT)
LANGUAGE plpgsql STABLE STRICT ROWS 1 AS $function$
BEGIN
    RETURN QUERY
    SELECT texts.kind, texts.text
    FROM object_state owner
    CROSS JOIN unnest(owner.refs) AS file_zoid JOIN object_state file ON file.zoid = file_zoid
    CROSS JOIN unnest(file.refs) AS blob_zoid JOIN object_state blob ON blob.zoid = blob_zoid
    JOIN pgcatalog_file_blobs blobs ON (blobs.zoid, blobs.tid) = (blob.zoid, blob.tid)
    JOIN pgcatalog_file_texts texts USING (digest, kind)
    WHERE owner.zoid = object AND texts.text <> ''
    LIMIT 1;
END
$function$;

-- The parts of the text of a file, of up to 3,000 characters, with the most of some words, the best first; at most 4.  They
-- have the number of their page, and whether the page has text before and behind.  patterns are regular expressions of the
-- words, and anything one that matches each of them.  No row if a page of beginning, where the text begins behind a form feed,
-- has all words, and is_enough.
CREATE OR REPLACE FUNCTION pgcatalog_file_parts(
    source TEXT, beginning TEXT, patterns TEXT[], anything TEXT, is_enough BOOLEAN)
RETURNS TABLE (numbers BIGINT[], parts TEXT[], have_before BOOLEAN[], have_behind BOOLEAN[])
LANGUAGE plpgsql STABLE STRICT ROWS 1 AS $function$
BEGIN
    IF is_enough AND EXISTS (
        SELECT FROM string_to_table(substr(beginning, strpos(beginning, E'\f')), E'\f') AS page
        WHERE page COLLATE "C" ~ ALL (patterns)
    ) THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH matching AS MATERIALIZED (
        SELECT number, page, ARRAY(SELECT regexp_instr(page COLLATE "C", pattern) FROM unnest(patterns) AS pattern) AS places
        FROM string_to_table(source, E'\f') WITH ORDINALITY AS pages (page, number)
        WHERE page COLLATE "C" ~ anything
    ), best AS (
        SELECT number, page, places, cardinality(array_remove(places, 0)) AS matched FROM matching
        ORDER BY matched DESC, number LIMIT 4
    ), starts AS (
        SELECT number, page, matched, start, min(term) AS term
        FROM best CROSS JOIN unnest(places) WITH ORDINALITY AS each (place, term)
        CROSS JOIN LATERAL (SELECT CASE WHEN octet_length(page) <= 3000 THEN 1 ELSE greatest(1, place - 300) END AS start) AS s
        WHERE place > 0
        GROUP BY number, page, matched, start
        ORDER BY matched DESC, number, term LIMIT 4
    ), found AS (
        SELECT number, start, substr(page, start, 3000) AS part FROM starts ORDER BY matched DESC, number, term
    )
    SELECT array_agg(number), array_agg(part), array_agg(start > 1), array_agg(length(part) = 3000) FROM found;
END
$function$;

-- A chunk of the text of an object: of source, its text stored for snippets, or from start 20,000 on, which is the most that is
-- stored there, of the text of its file.  is_last: it is the end of the text.  first_page and last_page are the pages of the
-- file where it begins and ends; 0 in front of the file.
CREATE OR REPLACE FUNCTION pgcatalog_chunk(source TEXT, file TEXT, start INTEGER, stop INTEGER)
RETURNS TABLE (chunk TEXT, is_last BOOLEAN, first_page BIGINT, last_page BIGINT)
LANGUAGE sql IMMUTABLE ROWS 1 AS $function$
    SELECT substr(text, first + 1, stop - start), first + stop - start >= length(text),
        pages + regexp_count(left(text, first), E'\f'), pages + regexp_count(left(text, first + stop - start), E'\f')
    FROM (
        SELECT CASE WHEN is_of_file THEN file ELSE source END AS text,
            CASE WHEN is_of_file THEN start - 20000 ELSE start END AS first, is_of_file::integer AS pages
        FROM (SELECT start >= 20000 AS is_of_file) AS kind
    ) AS place
$function$;

-- The tables of text chunks with vectors, pgcatalog_<hex oid>_chunks_<number>: one per embedder, in use or being filled.  A
-- table without a row here waits to be dropped.
CREATE TABLE IF NOT EXISTS pgcatalog_vectors (
    relation        TEXT PRIMARY KEY,      -- the table of chunks
    catalog         BIGINT NOT NULL,       -- zoid of the catalog tool
    number          INTEGER NOT NULL,      -- the one at the end of the name
    url             TEXT NOT NULL,         -- of the embedder
    model           TEXT NOT NULL,         -- requested from the embedder
    question_prefix TEXT NOT NULL,         -- put in front of a question
    passage_prefix  TEXT NOT NULL,         -- put in front of a chunk
    answers_as      TEXT NOT NULL,         -- the model in the embedder's responses
    is_complete     BOOLEAN NOT NULL,      -- all texts that existed when the table was created have their chunks
    of_private      BOOLEAN NOT NULL,      -- includes texts that Anonymous may not see
    calibration     JSONB                  -- of the model to the site; NULL until there are chunks
);


-- ---- After missing tables were recreated: foreign keys and rows, after a partial restore of a dump

-- When a table is dropped or lost, foreign keys to it are lost, too: rows without a parent are deleted, and the key is
-- recreated.
DO $$
DECLARE
    lost RECORD;
BEGIN
    FOR lost IN
        SELECT * FROM (VALUES
            ('pgcatalog_changes', ARRAY['tid'], 'transaction_log'),
            ('pgcatalog_rebuild_change', ARRAY['catalog'], 'pgcatalog_rebuild'),
            ('pgcatalog_file_blobs', ARRAY['digest', 'kind'], 'pgcatalog_file_texts')
        ) AS key (child, names, parent)
        WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass(child) AND contype = 'f')
            AND EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass(parent) AND contype = 'p')
            AND (SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(child) AND attname = ANY(names)) = cardinality(names)
    LOOP
        EXECUTE format('DELETE FROM %1$I WHERE (%2$s) NOT IN (SELECT %2$s FROM %3$I)',
            lost.child, array_to_string(lost.names, ', '), lost.parent);
        EXECUTE format('ALTER TABLE %I ADD FOREIGN KEY (%s) REFERENCES %I ON DELETE CASCADE',
            lost.child, array_to_string(lost.names, ', '), lost.parent);
    END LOOP;
END $$;

-- A dump may have been restored without some of these tables.  A catalog whose rows are lost, or whose rows have numbers of
-- lost lists, becomes a catalog without a table, and reports this until a rebuild has filled it.
DO $$
DECLARE
    one RECORD;
    is_lost BOOLEAN;
BEGIN
    DELETE FROM pgcatalog_rebuild
    WHERE to_regclass(quote_ident(relation)) IS NULL OR to_regclass(quote_ident(relation || '_idx')) IS NULL;
    DELETE FROM pgcatalog_state WHERE to_regclass(quote_ident(relation)) IS NULL;
    FOR one IN SELECT catalog, relation, interned FROM pgcatalog_state WHERE interned <> '{}' LOOP
        EXECUTE format(
            'SELECT NOT EXISTS (SELECT FROM pgcatalog_sets) AND EXISTS (SELECT FROM %I WHERE num_nonnulls(%s) > 0)',
            one.relation, (SELECT string_agg(quote_ident(name), ', ') FROM unnest(one.interned) AS name)
        ) INTO is_lost;
        IF is_lost THEN
            DELETE FROM pgcatalog_state WHERE catalog = one.catalog;
        END IF;
    END LOOP;
END $$;
