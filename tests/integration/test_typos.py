"""Near words by index: on plain PostgreSQL, and with pg_trgm where a server on this machine has it."""

from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.session import TRIGRAMS
from plone.pgcatalog.discovery.vocabulary import near_sql
from plone.pgcatalog.fulltext.edits import containing
from plone.pgcatalog.fulltext.edits import distance
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.fulltext.term_statistics import create_trigram_index
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from tests.conftest import memory_folder
from tests.integration import site as sites
from typing import Any

import psycopg
import pytest
import random
import shutil
import string
import subprocess


def with_trigrams() -> list[Path]:
    """Return the folders of programs of the servers on this machine that have pg_trgm."""
    folders = [Path(found).resolve().parent for found in (shutil.which("pg_config"),) if found]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [folder for folder in folders if (folder / "initdb").exists() and has_extension(folder)]


def has_extension(folder: Path) -> bool:
    program = folder / "pg_config"
    if not program.exists():
        # Debian has the program in a package of its own, and the files where it always has them.
        return Path(f"/usr/share/postgresql/{folder.parent.name}/extension/pg_trgm.control").exists()
    share = subprocess.run([program, "--sharedir"], capture_output=True, text=True, check=True).stdout.strip()
    return (Path(share) / "extension" / "pg_trgm.control").exists()


SERVERS = [None, *with_trigrams()[:1]]
CATALOG, COLUMN = 7, "searchable_text"
WORDS = ["house", "mouse", "hose", "houses", "shouse", "information", "informations", "baumhaus", "a", "ab", "x_%y"]


def generated() -> list[str]:
    """Return distinct words, near to one another as words of a language are."""
    chance = random.Random(5)
    parts = ["".join(chance.choices(string.ascii_lowercase, k=chance.randrange(2, 5))) for _ in range(120)]
    return sorted({"".join(chance.choices(parts, k=chance.randrange(1, 4))) for _ in range(6000)})


def edited(chance: random.Random, word: str) -> str:
    """Return *word* with one edit anywhere."""
    at, letter = chance.randrange(len(word)), chance.choice(string.ascii_lowercase)
    return chance.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
        ]
    )


@pytest.fixture(scope="module", params=SERVERS, ids=lambda folder: "trigrams" if folder else "plain")
def connection(request: Any, zope: None, postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a database with counted words; with the extension in a schema of its own, or without."""
    if request.param is None:
        yield from filled(postgres.createdb("typos"), False)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_PG_BIN", str(request.param))
        with EmbeddedPostgres(settings=TEST_SETTINGS, temp_dir=memory_folder()) as server:
            yield from filled(server.createdb("typos"), True)


def filled(dsn: str, trigrams: bool) -> Iterator[psycopg.Connection[Any]]:
    with sites.opened(dsn):
        pass
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(load_sql("base"))
        rows = [(CATALOG, COLUMN, word, 1 + len(word)) for word in {*WORDS, *generated()}]
        rows += [(CATALOG, "title", "mouser", 9), (CATALOG + 1, COLUMN, "mousey", 9), (CATALOG, COLUMN, "\2mous", 9)]
        connection.cursor().executemany("INSERT INTO pgcatalog_words VALUES (%s, %s, %s, %s)", rows)
        if trigrams:
            connection.execute('CREATE SCHEMA "odd schema"; CREATE EXTENSION pg_trgm SCHEMA "odd schema"')
        # Where there is no extension, and the second time, nothing happens.
        assert [create_trigram_index(connection), create_trigram_index(connection)] == [trigrams, False]
        connection.execute("ANALYZE pgcatalog_words")
        yield connection


def trigram_schema(execute: Callable[..., list[tuple[Any, ...]]]) -> str | None:
    """Return the quoted schema of pg_trgm as sessions learn it."""
    [(schema,)] = execute(f"SELECT {TRIGRAMS}")
    return schema


def near_words(connection: psycopg.Connection[Any], words: list[str]) -> list[tuple[str, str, int]]:
    execute = executing(connection)
    return execute(near_sql(trigram_schema(execute)), (words, CATALOG, COLUMN, 2))


def executing(connection: psycopg.Connection[Any]) -> Callable[..., list[tuple[Any, ...]]]:
    return lambda statement, values=(): connection.execute(statement, values, prepare=False).fetchall()


@pytest.mark.slow
def test_all_words_one_edit_away_are_near(connection: psycopg.Connection[Any]) -> None:
    chance = random.Random(3)
    known = [word for word in {*WORDS, *generated()} if len(word) > 2]
    asked = sorted({edited(chance, word) for word in chance.choices(sorted(known), k=150)})
    found: dict[str, set[str]] = {word: set() for word in asked}
    for word, other, documents in near_words(connection, asked):
        found[word].add(other)
        assert documents == 1 + len(other)
    for word in asked:
        assert {other for other in known if distance(word, other, 1) is not None} <= found[word]


@pytest.mark.parametrize(
    ("asked", "near"),
    [("huose", "house"), ("xhouse", "house"), ("infromatoin", "information"), ("informationss", "information")],
)
def test_typos(connection: psycopg.Connection[Any], asked: str, near: str) -> None:
    found = {other for _, other, _ in near_words(connection, [asked])}
    assert near in found
    # Neither stems nor words of another text index or catalog.
    assert found.isdisjoint({"mouser", "mousey", "\2mous"})


@pytest.mark.parametrize("asked", ["", "a", "'", "\\", "%", "数据", "x" * 3000, "\U0001f600"])
def test_odd_words_are_legal(connection: psycopg.Connection[Any], asked: str) -> None:
    assert isinstance(near_words(connection, [asked]), list)


def test_near_words_and_parts_are_found_by_index(connection: psycopg.Connection[Any]) -> None:
    execute = executing(connection)
    schema = trigram_schema(execute)
    plan = execute(f"EXPLAIN {near_sql(schema, 9)}", (["huose"], CATALOG, COLUMN, 2))
    near = "\n".join(line for (line,) in plan)
    assert "pgcatalog_words_deletions" in near, near
    assert "Seq Scan" not in near, near
    if schema:
        assert "pgcatalog_words_trigrams" in near, near
        part = "EXPLAIN SELECT word FROM pgcatalog_words WHERE ascii(word) > 2 AND word LIKE %s"
        assert "pgcatalog_words_trigrams" in str(execute(part, (containing("mhau"),)))
    begin = "EXPLAIN SELECT word FROM pgcatalog_words WHERE catalog = %s AND text_column = %s AND word LIKE %s"
    assert "pgcatalog_words_pkey" in str(execute(begin, (CATALOG, COLUMN, "hou%")))


def test_counting_makes_the_index_of_trigrams(connection: psycopg.Connection[Any]) -> None:
    execute = executing(connection)
    if trigram_schema(execute) is None:
        assert execute("SELECT to_regclass('pgcatalog_words_trigrams')") == [(None,)]
        return
    connection.execute("DROP INDEX pgcatalog_words_trigrams")
    assert trigram_schema(execute) is None
    connection.execute("INSERT INTO pgcatalog_state VALUES (99, 1, 'pgcatalog_nothing', '{}', 1)")
    assert count_words(connection, 99)
    assert trigram_schema(execute) == '"odd schema"'
