"""Suggestions: words of the site, permissions, typos, and costs."""

from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.database.direct import direct_dsn
from plone.pgcatalog.database.expected import shared_faults
from plone.pgcatalog.database.generations import TRIGRAMS
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.prepared import NO_SCAN
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.discovery.suggest import near_sql
from plone.pgcatalog.discovery.suggest import near_values
from plone.pgcatalog.discovery.suggest import TYPED
from plone.pgcatalog.discovery.suggest import typed_values
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.fulltext.term_statistics import create_trigram_index
from plone.pgcatalog.fulltext.word_lookup import distance
from plone.pgcatalog.i18n import english
from plone.pgcatalog.observe.health import of_fault
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from tests.conftest import memory_folder
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.content import put_words
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import FUTURE
from tests.integration.people import PAST
from tests.integration.people import publish
from tests.integration.people import share
from tests.integration.traffic import traced
from tests.integration.web import Site
from typing import Any

import psycopg
import pytest
import random
import shutil
import string
import subprocess
import transaction


TEXTS = [
    *("needle in a haystack", "needles and pins", "needlework needs needles", "The Straße to Zürich"),
    *("information on informatics", "数据库目录 全文检索", "O'Neill foo_bar co", "Привет мир", "database", "kitten"),
]


def fill(portal: Any) -> None:
    add_users(portal)
    for number, text in enumerate(TEXTS):
        publish(create(portal, "Document", f"p{number}", title=text))
    share(create(portal, "Document", "s", title="needful secretive rendezvous"), "mara", "Reader")
    for name, setter, moment in (("old", "setExpirationDate", PAST), ("later", "setEffectiveDate", FUTURE)):
        page = create(portal, "Document", name, title=f"needl{name} outdated{name}")
        publish(page)
        getattr(page, setter)(moment)
        page.reindexObject()


SHARED = fill


@pytest.fixture(scope="module")
def counted_site(shared_site: Site, shared_portal: Any) -> Site:
    counted(shared_site.dsn, shared_portal.portal_catalog)
    return shared_site


@pytest.fixture
def words(counted_site: Site, shared_filled: Any) -> Any:
    """The catalog of a site with texts whose words are counted."""
    return shared_filled.portal_catalog


# -- suggested words


@pytest.mark.parametrize(
    ("typed", "query", "suggested"),
    [
        ("needle", {}, {"needle", "needles", "needlework"}),
        ("NEEDLEw", {}, {"needlework"}),
        ("straß", {}, {"strasse"}),
        ("zürich", {}, {"Zürich"}),
        ("foo_", {}, {"foo_bar"}),
        ("ПРИВ", {}, {"привет"}),
        ("数", {}, {"数据"}),
        ("o'nei", {}, {"neill"}),
        *((typed, {}, set()) for typed in ("fooX", "数据库", "x")),
        # Words that occur with the other words, in the texts of the query.
        ("pins need", {}, {"needles"}),
        ("pins AND needles an", {}, {"and"}),
        ("zürich need", {}, set()),
        ("need", {"getId": "p0"}, {"needle"}),
        ("need", {"portal_type": "Event"}, set()),
        # The most frequent ones, up to the limit.
        ("needle", {"limit": 1}, {"needles"}),
        ("needle", {"limit": 0}, set()),
        # One letter is wrong.
        *((typed, {}, {"needle", "needles", "needlework"}) for typed in ("nedle", "neeedle", "neexle", "nedele")),
    ],
)
def test_suggestions_are_words_with_the_prefix(words: Any, typed: str, query: Any, suggested: set[str]) -> None:
    assert set(words.suggest(typed, **query)) == suggested


@pytest.mark.parametrize(
    ("typed", "query", "meant"),
    [
        *((typo, {}, "information") for typo in ("informtion", "ifnormation", "xnformation")),
        *((typo, {}, "needle") for typo in ("neeedle", "neexle", "nedele", "needel")),
        ("informmatics", {}, "informatics"),
        ("strsase", {}, "straße"),
        ("привет мри", {}, "привет мир"),
        ("databsae", {}, "database"),
        ("Databsae", {}, "Database"),
        ("DATABSAE", {}, "DATABASE"),
        ("needle AND hsystack", {}, "needle AND haystack"),
        ('"needle in a" OR hsystack', {}, '"needle in a" OR haystack'),
        ("hsystack neexle", {}, "haystack needle"),
        ("informtion", {"getId": "p4"}, "information"),
        ("informtion", {"getId": "p0"}, None),
        # The words are of the site, but of no single page.
        *((typed, {}, None) for typed in ("haystack zuricj", "hsystack kitten", "needle -hsystack", "needle hsyst*")),
        *(
            (typed, {}, None)
            for typed in ("needle", "needle haystack", "needle AND", "xyzzyxyzzy", "c", "ca", "数据库")
        ),
    ],
)
def test_unknown_words_are_corrected(words: Any, typed: str, query: Any, meant: str | None) -> None:
    assert words.did_you_mean(typed, **query) == meant
    assert meant is None or len(words(SearchableText=typed)) <= len(words(SearchableText=meant)) > 0


HOSTILE = (
    "",
    "   ",
    *'*?"%_\\',
    "((",
    "AND",
    "NOT x",
    "\x00",
    "nee\x00dle",
    "\ud800",
    "need\udfffle",
    "'; DROP TABLE x; --",
)
LONG = ("x" * 10_000, "word " * 2_000, "数" * 5_000, "\u0130\ufb01", "a" * 41, "é\u0301" * 30)


def test_any_text_is_legal(words: Any) -> None:
    for text in (*HOSTILE, *LONG):
        assert isinstance(words.suggest(text), list)
        assert isinstance(words.did_you_mean(text), str | None)
        assert len(words(getId="p0")) == 1


# -- permissions


@pytest.mark.parametrize("user", [None, "rita", "mara", "boss"])
def test_words_of_hidden_and_inactive_pages_are_neither_suggested_nor_corrections(words: Any, user: str | None) -> None:
    """A hidden word is treated as a word of the same letters without any text."""
    reads, sees_inactive = user in ("mara", "boss"), user == "boss"
    with acting_as(words.aq_parent, user):
        assert words.suggest("secr") == ["secretive"] * reads
        assert words.did_you_mean("secretve") == ("secretive" if reads else None)
        assert ("needful" in words.suggest("need")) == reads
        assert set(words.suggest("outdated")) == ({"outdatedold", "outdatedlater"} if sees_inactive else set())
        assert words.did_you_mean("outdatedodl") == ("outdatedold" if sees_inactive else None)
        if not reads:
            assert words.did_you_mean("needful") is words.did_you_mean("needxul") is None
            assert words.did_you_mean("rendezvous haystakc") is None
            assert words.suggest("rendezvous need") == words.suggest("nowhere need") == []
            assert words.suggest("secr", allowedRolesAndUsers=["Manager"]) == []
            assert words.suggest("outdated", effectiveRange=PAST, effectiveRange_range="min") == []
            assert words.did_you_mean("secretve", allowedRolesAndUsers={"query": ["Manager"]}) is None


def test_frequent_word_may_be_hidden_in_the_sampled_rows(words: Any, monkeypatch: Any) -> None:
    """The word is in most texts; neither a sample of hidden rows nor one without it shows that it is missing."""
    monkeypatch.setattr("plone.pgcatalog.discovery.suggest.FREQUENT", 1_000_000)
    for sample in (0, 1, 2):
        monkeypatch.setattr("plone.pgcatalog.discovery.suggest.SAMPLE", sample)
        for user, seen in (("mara", {"needful"}), (None, set())):
            with acting_as(words.aq_parent, user):
                assert "needle" in words.suggest("needle")
                assert set(words.suggest("needf")) == seen


def test_word_after_another_one_is_looked_up_like_one_alone(words: Any, monkeypatch: Any) -> None:
    """A scan stops at the first row that has the word, so it is not forbidden, as it is for a search for texts."""
    sent: list[str] = []
    run = PreparedStatements.run

    def spy(self: Any, statements: Any, *args: Any, **options: Any) -> Any:
        sent.extend(text for text, _ in statements)
        return run(self, statements, *args, **options)

    monkeypatch.setattr(PreparedStatements, "run", spy)
    monkeypatch.setattr(words._p_jar._normal_storage.pg_connection, "prepare_threshold", 5)
    assert "needle" in words.suggest("haystack needl")
    assert [text for text in sent if "MATERIALIZED" in text]
    assert NO_SCAN not in sent
    assert len(words.searchResults(SearchableText="haystack")) == 1
    assert NO_SCAN in sent


def test_the_most_frequent_words_are_read_in_their_order(counted_site: Site) -> None:
    """Of many words with a prefix only the suggested ones are read."""
    with psycopg.connect(counted_site.dsn) as connection:
        put_words(connection, 7, "text", {f"s{n}": n for n in range(1, 20_001)})
        connection.execute("ANALYZE pgcatalog_words, pgcatalog_spellings")
        statement = TYPED.format(more="", candidates=50)
        params = typed_values(7, "text", "s1")
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {statement}", params))
        assert "pgcatalog_words_beginning" in plan
        # The rarer words are not even read.
        assert plan.count("Sort  (") == 1, plan
        assert "One-Time Filter" in plan.partition("Sort  (")[2], plan
        first = connection.execute(statement, params).fetchone()
    assert first == ("s19999", 19999)


# -- from one moment to the next


def test_words_are_suggested_from_their_count_until_their_text_is_removed(portal: Any, catalog: Any, dsn: str) -> None:
    page = create(portal, "Document", "page", title="ephemeral")
    transaction.commit()
    assert catalog.suggest("ephem") == []
    counted(dsn, catalog)
    assert catalog.suggest("ephem") == ["ephemeral"]
    with psycopg.connect(dsn) as connection:
        for step in (1, -1):
            connection.execute("UPDATE pgcatalog_texts SET catalog = catalog + %s", [step])
            connection.commit()
            transaction.begin()
            # Words of another site in the same database are not suggested.
            assert catalog.suggest("ephem") == (["ephemeral"] if step < 0 else [])
    page.title = "lasting"
    page.reindexObject()
    for end in (lambda: None, transaction.commit):
        end()
        assert (catalog.suggest("ephem"), catalog.did_you_mean("ephemerla")) == ([], None)


# -- costs


def test_suggestion_takes_few_statements(words: Any) -> None:
    for ask, typed, statements in (
        (words.suggest, "needle", 1),
        (words.suggest, "neelde", 1),
        (words.did_you_mean, "needle haystack", 1),
        (words.did_you_mean, "xyzzyxyzzy", 1),
        (words.did_you_mean, "hsystack", 2),
    ):
        transaction.begin()
        result_cache().clear()
        # The first statement of a snapshot also sets a savepoint.
        len(words(getId="p0"))
        with traced(words.aq_parent) as traffic:
            ask(typed)
        assert traffic[0].round_trips == statements, traffic[0].statements


def with_trigrams() -> list[Path]:
    """Return the program folders of the servers on this machine that have pg_trgm."""
    folders = [Path(found).resolve().parent for found in (shutil.which("pg_config"),) if found]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [folder for folder in folders if (folder / "initdb").exists() and has_extension(folder)]


def has_extension(folder: Path) -> bool:
    program = folder / "pg_config"
    if not program.exists():
        # Debian has the programs and the extension's files in different folders.
        return Path(f"/usr/share/postgresql/{folder.parent.name}/extension/pg_trgm.control").exists()
    share = subprocess.run([program, "--sharedir"], capture_output=True, text=True, check=True).stdout.strip()
    return (Path(share) / "extension" / "pg_trgm.control").exists()


SERVERS = [None, *with_trigrams()[:1]]
CATALOG, COLUMN = 7, "searchable_text"
WORDS = ["house", "mouse", "hose", "houses", "shouse", "information", "informations", "baumhaus", "a", "ab", "x_%y"]


def generated() -> list[str]:
    """Return distinct words that are similar to one another, as words of a language are."""
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
    with psycopg.connect(direct_dsn(dsn), autocommit=True) as connection:
        connection.execute(load_sql("base"))
        put_words(
            connection, CATALOG, COLUMN, {"\2mous": 9, **{word: documents_of(word) for word in {*generated(), *WORDS}}}
        )
        put_words(connection, CATALOG, "title", {"mouser": 9})
        put_words(connection, CATALOG + 1, COLUMN, {"mousey": 9})
        if trigrams:
            connection.execute('CREATE SCHEMA "odd schema"; CREATE EXTENSION pg_trgm SCHEMA "odd schema"')
        # Without the extension, and the second time, nothing happens.
        assert [create_trigram_index(connection), create_trigram_index(connection)] == [trigrams, False]
        connection.execute("ANALYZE pgcatalog_words, pgcatalog_spellings")
        yield connection


def documents_of(word: str) -> int:
    """Return the number of documents with *word*: some are rare, with no row in pgcatalog_words."""
    return 1 + len(word) % 5


def trigram_schema(execute: Callable[..., list[tuple[Any, ...]]]) -> str | None:
    """Return the quoted schema of pg_trgm as sessions read it."""
    [(schema,)] = execute(f"SELECT {TRIGRAMS}")
    return schema


def near_words(connection: psycopg.Connection[Any], words: list[str]) -> list[tuple[str, str, int]]:
    execute = executing(connection)
    schema = trigram_schema(execute)
    return execute(near_sql(schema), near_values(schema, words, CATALOG, COLUMN, 2))


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
        assert documents == documents_of(other)
    for word in asked:
        assert {other for other in known if distance(word, other, 1) is not None} <= found[word]


def test_typos(connection: psycopg.Connection[Any]) -> None:
    for asked, near in (
        ("huose", "house"),
        ("xhouse", "house"),
        ("infromatoin", "information"),
        ("informationss", "information"),
    ):
        found = {other for _, other, _ in near_words(connection, [asked])}
        assert near in found, asked
        # Neither stems nor words of another text index or catalog.
        assert found.isdisjoint({"mouser", "mousey", "\2mous"})
    for odd in ("", "a", "'", "\\", "%", "数据", "x" * 3000, "\U0001f600"):
        assert isinstance(near_words(connection, [odd]), list)


def test_near_words_and_parts_are_found_by_index(connection: psycopg.Connection[Any]) -> None:
    execute = executing(connection)
    schema = trigram_schema(execute)
    plan = execute(f"EXPLAIN {near_sql(schema, 9)}", near_values(schema, ["huose"], CATALOG, COLUMN, 2))
    near = "\n".join(line for (line,) in plan)
    assert "pgcatalog_spellings_near" in near, near
    assert not scanned(near), near
    if schema:
        assert "pgcatalog_words_trigrams" in near, near
    for prefix in ("h", "hou", "houseb", "zzz"):
        plan = execute(f"EXPLAIN {TYPED.format(more='', candidates=50)}", typed_values(CATALOG, COLUMN, prefix))
        typed = "\n".join(line for (line,) in plan)
        assert "pgcatalog_spellings_pkey" in typed, typed
        assert not scanned(typed), typed


def scanned(plan: str) -> bool:
    """Return whether a table of words is read whole in *plan*."""
    return any(f"Seq Scan on {table}" in plan for table in ("pgcatalog_words", "pgcatalog_spellings"))


def test_lost_index_of_words_is_named_and_restored_by_a_count(connection: psycopg.Connection[Any]) -> None:
    execute = executing(connection)
    has_extension = trigram_schema(execute) is not None
    assert shared_faults(execute) == []
    connection.execute("DROP INDEX IF EXISTS pgcatalog_words_trigrams")
    assert trigram_schema(execute) is None
    lines = [(fault["name"], fault["line"], english(of_fault(fault))) for fault in shared_faults(execute)]
    text = "the index pgcatalog_words_trigrams is missing; run pgcatalog vacuum ZOPE_CONF to create it"
    assert lines == [("pgcatalog_words_trigrams", "pgcatalog vacuum ZOPE_CONF", text)] * has_extension
    connection.execute("INSERT INTO pgcatalog_state VALUES (99, 1, 'pgcatalog_nothing', '{}', 1)")
    assert count_words(connection, 99)
    assert trigram_schema(execute) == ('"odd schema"' if has_extension else None)
    assert shared_faults(execute) == []
