"""Words are counted outside of requests, and what is counted is what the texts say."""

from collections import Counter
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.database.background import PerDatabase
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.fulltext import term_statistics
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.fulltext.term_statistics import Counting
from plone.pgcatalog.fulltext.term_statistics import is_stale
from plone.pgcatalog.sql import locks
from tests.integration.content import create
from typing import Any

import click.testing
import psycopg
import pytest
import transaction


STEM = "\2"


def words_of(dsn: str, catalog: Any, column: str = "searchable_text") -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT word, documents FROM pgcatalog_words WHERE catalog = %s AND text_column = %s",
            [catalog._core.zoid, column],
        ).fetchall()
    return {word: documents for word, documents in rows if not word.startswith(STEM)}


def texts_of(dsn: str, catalog: Any, column: str = "searchable_text") -> tuple[int, float]:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT documents, average_words FROM pgcatalog_texts WHERE catalog = %s AND text_column = %s",
            [catalog._core.zoid, column],
        ).fetchone()
    assert row is not None
    return row


def entries(catalog: Any, index: str = "SearchableText") -> list[list[str]]:
    found = (catalog._catalog.getIndex(index).getEntryForObject(rid, []) for rid in catalog._catalog.data)
    return [words for words in found if words]


def count(dsn: str, catalog: Any) -> bool:
    with connect_directly(dsn, "test") as connection:
        return count_words(connection, catalog._core.zoid)


def fill(portal: Any) -> None:
    for i, text in enumerate(["river bank", "river river boat", "O'Neill \\ Zürich", "boat"]):
        create(portal, "Document", f"page-{i}", title=text, description="told" if i else "")
    transaction.commit()


@pytest.mark.parametrize(("index", "column"), [("SearchableText", "searchable_text"), ("Title", "title")])
def test_each_word_counts_the_documents_it_stands_in(
    portal: Any, catalog: Any, dsn: str, index: str, column: str
) -> None:
    fill(portal)
    assert count(dsn, catalog)
    texts = entries(catalog, index)
    assert words_of(dsn, catalog, column) == Counter(word for words in texts for word in set(words))
    documents, average = texts_of(dsn, catalog, column)
    assert documents == len(texts)
    assert average == pytest.approx(sum(map(len, texts)) / len(texts))


def test_counting_again_follows_the_changes(portal: Any, catalog: Any, dsn: str, monkeypatch: Any) -> None:
    fill(portal)
    count(dsn, catalog)
    portal.manage_delObjects(["page-1"])
    portal["page-3"].title = "anchor"
    portal["page-3"].reindexObject()
    transaction.commit()
    # In portions, as a large catalog.
    monkeypatch.setattr("plone.pgcatalog.fulltext.term_statistics.PORTION", 2)
    count(dsn, catalog)
    found = words_of(dsn, catalog)
    assert found == Counter(word for words in entries(catalog) for word in set(words))
    assert (found["anchor"], found["river"], "boat" in found) == (1, 1, False)


def test_an_unchanged_catalog_writes_no_word_again(portal: Any, catalog: Any, dsn: str) -> None:
    fill(portal)
    count(dsn, catalog)
    with psycopg.connect(dsn) as connection:
        before = connection.execute("SELECT max(xmin::text::bigint), count(*) FROM pgcatalog_words").fetchone()
    count(dsn, catalog)
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT max(xmin::text::bigint), count(*) FROM pgcatalog_words").fetchone() == before


def test_a_count_waits_for_no_commit_and_no_commit_for_it(portal: Any, catalog: Any, dsn: str) -> None:
    fill(portal)
    with psycopg.connect(dsn) as committing:
        # What a commit of the storage holds: its lock, and the row of the catalog.
        committing.execute("SELECT pg_advisory_xact_lock(0)")
        committing.execute("UPDATE pgcatalog_state SET generation = generation + 1")
        with connect_directly(dsn, "test") as connection:
            connection.execute("SET lock_timeout = '1ms'")
            assert count_words(connection, catalog._core.zoid)


def test_only_one_process_counts_a_catalog(portal: Any, catalog: Any, dsn: str) -> None:
    with connect_directly(dsn, "test") as other:
        other.execute("SELECT pg_advisory_lock(%s, %s)", locks.of_catalog(locks.COUNT_WORDS, catalog._core.zoid))
        assert not count(dsn, catalog)
    assert count(dsn, catalog)


def test_words_go_with_a_clear_and_with_the_catalog(portal: Any, catalog: Any, dsn: str) -> None:
    fill(portal)
    count(dsn, catalog)
    assert words_of(dsn, catalog)
    catalog.manage_catalogClear()
    transaction.commit()
    assert not words_of(dsn, catalog)
    count(dsn, catalog)
    portal._delObject("portal_catalog")
    transaction.commit()
    with psycopg.connect(dsn) as connection:
        for table in ("pgcatalog_words", "pgcatalog_texts"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_catalog_that_is_gone_is_not_counted(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert not count_words(connection, 12345678)
        assert connection.execute("SELECT count(*) FROM pgcatalog_texts").fetchone() == (0,)


def test_the_vacuum_command_counts(portal: Any, catalog: Any, dsn: str) -> None:
    fill(portal)
    result = click.testing.CliRunner().invoke(main, ["vacuum", "--dsn", dsn])
    assert result.exit_code == 0
    assert "words counted: 1 catalogs" in result.output
    assert words_of(dsn, catalog)["river"] == 2


@pytest.mark.parametrize(
    ("generation", "counted", "documents", "stale"),
    [(5, None, 0, True), (100, 100, 50, False), (104, 100, 50, False), (106, 100, 50, True), (3, 100, 50, True)],
)
def test_counts_are_stale_when_a_tenth_has_changed(
    generation: int, counted: int | None, documents: int, stale: bool
) -> None:
    assert is_stale(generation, counted, documents) == stale


def test_a_ranked_search_has_words_counted(
    portal: Any, catalog: Any, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(portal)
    monkeypatch.setattr(term_statistics, "PAUSE", 1000)
    own = Counting(dsn)
    monkeypatch.setattr(term_statistics, "countings", PerDatabase(lambda _: own))
    assert len(catalog.unrestrictedSearchResults(portal_type="Document", sort_on="created")[:3]) == 3
    assert own.flush(10)
    assert not words_of(dsn, catalog)
    assert catalog.unrestrictedSearchResults(SearchableText="river")[:1]
    assert own.flush(10)
    assert words_of(dsn, catalog)["river"] == 2
    # Fresh counts are left alone, and stale ones for a while.
    create(portal, "Document", "more", title="river again, and much more of everything")
    transaction.commit()
    assert catalog.unrestrictedSearchResults(SearchableText="river")[:1]
    assert own.flush(10)
    assert words_of(dsn, catalog)["river"] == 2


def test_a_server_that_is_gone_only_leaves_a_warning(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    own = Counting(f"host={tmp_path} dbname=nothing")
    own.request_count(1, 1, 60)
    assert own.flush(10)
    assert "the words of a catalog could not be counted" in caplog.text
