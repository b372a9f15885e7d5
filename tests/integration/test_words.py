"""Counts of words: those of texts, and those of searches."""

from collections import Counter
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.statistics import executing
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.indexing.jobs import WordCount
from plone.pgcatalog.queue.progress import Stopped
from plone.pgcatalog.queue.worker import put_needed
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.sql import locks
from tests.integration.content import create
from tests.integration.relation import damage
from typing import Any

import click.testing
import psycopg
import pytest
import transaction


STEM = "\2"
#: The last transaction that has written a word, and the number of rows.
WRITTEN = " UNION ALL ".join(
    f"SELECT max(xmin::text::bigint), count(*) FROM {table}" for table in ("pgcatalog_words", "pgcatalog_spellings")
)

#: The rows of the words.
STORED = (
    "SELECT text_number, word, documents FROM pgcatalog_words ORDER BY text_number, word",
    "SELECT text_number, first, words FROM pgcatalog_spellings ORDER BY text_number, first",
)


def words_of(dsn: str, catalog: Any, column: str = "searchable_text") -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT word, documents FROM pgcatalog_spelled(%s, %s, '', chr(1114111))", [catalog._core.zoid, column]
        ).fetchall()
    return dict(rows)


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
def test_each_word_has_the_number_of_its_documents(
    portal: Any, catalog: Any, dsn: str, index: str, column: str
) -> None:
    fill(portal)
    assert count(dsn, catalog)
    texts = entries(catalog, index)
    assert words_of(dsn, catalog, column) == Counter(word for words in texts for word in set(words))
    documents, average = texts_of(dsn, catalog, column)
    assert documents == len(texts)
    assert average == pytest.approx(sum(map(len, texts)) / len(texts))


def test_catalog_without_texts_is_searched(portal: Any, catalog: Any, dsn: str) -> None:
    """The average number of words of no document is 0."""
    damage(dsn, "UPDATE {} SET searchable_text = NULL, searchable_text_words = NULL")
    assert count(dsn, catalog)
    assert texts_of(dsn, catalog) == (0, 0.0)
    transaction.begin()
    assert len(catalog.unrestrictedSearchResults(SearchableText="river")) == 0
    fill(portal)
    transaction.begin()
    found = {brain.getId for brain in catalog.unrestrictedSearchResults(SearchableText="river")}
    assert found == {"page-0", "page-1"}


def test_the_planner_knows_how_many_words_were_counted(portal: Any, catalog: Any, dsn: str) -> None:
    fill(portal)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ANALYZE pgcatalog_words")
        count(dsn, catalog)
        rows = (
            "SELECT reltuples, (SELECT count(*) FROM pgcatalog_words) FROM pg_class WHERE relname = 'pgcatalog_words'"
        )
        row = connection.execute(rows).fetchone()
        assert row is not None
        estimated, counted = row
        assert estimated == counted > 0


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
        before = connection.execute(WRITTEN).fetchall()
    count(dsn, catalog)
    with psycopg.connect(dsn) as connection:
        assert connection.execute(WRITTEN).fetchall() == before


def test_stored_words_depend_on_the_texts_alone(portal: Any, catalog: Any, dsn: str) -> None:
    """A count that writes differences leaves the same rows as a count into empty tables."""
    fill(portal)
    count(dsn, catalog)
    for number in range(20):
        create(portal, "Document", f"more-{number}", title=" ".join(f"word{number}of{n}" for n in range(number)))
    portal.manage_delObjects(["page-0", "page-2"])
    transaction.commit()
    count(dsn, catalog)
    with psycopg.connect(dsn) as connection:
        found = [connection.execute(rows).fetchall() for rows in STORED]
        connection.execute("DELETE FROM pgcatalog_words")
        connection.execute("DELETE FROM pgcatalog_spellings")
        connection.commit()
        count(dsn, catalog)
        assert found == [connection.execute(rows).fetchall() for rows in STORED]
    words, blocks = found
    # A row for each word and stem in two or more documents; several words in a block.
    assert {documents > 1 for *_, documents in words} == {True}
    assert any(separator in block for *_, block in blocks for separator in STEM)


def test_earlier_form_of_the_tables_is_replaced(portal: Any, catalog: Any, dsn: str) -> None:
    fill(portal)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE pgcatalog_words, pgcatalog_spellings, pgcatalog_texts")
        connection.execute(
            "CREATE TABLE pgcatalog_words (catalog bigint, text_column text, word text, documents integer)"
        )
        connection.execute("CREATE TABLE pgcatalog_texts (catalog bigint, text_column text, documents bigint)")
        connection.execute(load_sql("base"))
    with connect(dsn, "test") as connection:
        assert needed(connection, catalog._core.zoid) == [catalog._core.zoid]
    assert count(dsn, catalog)
    assert words_of(dsn, catalog)["river"] == 2


def test_a_count_waits_for_no_commit_and_no_commit_for_it(portal: Any, catalog: Any, dsn: str) -> None:
    fill(portal)
    with psycopg.connect(dsn) as committing:
        # Locks of a commit of the storage: its advisory lock, and the row of the catalog.
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


def test_words_are_deleted_by_a_clear_and_with_the_catalog(portal: Any, catalog: Any, dsn: str) -> None:
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
        for table in ("pgcatalog_words", "pgcatalog_spellings", "pgcatalog_texts"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_dropped_catalog_is_not_counted(dsn: str) -> None:
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
    ("generation", "counted", "documents", "is_stale"),
    [(5, None, 0, True), (100, 100, 50, False), (104, 100, 50, False), (106, 100, 50, True), (3, 100, 50, True)],
)
def test_words_are_counted_again_when_a_tenth_has_changed(
    catalog: Any, dsn: str, generation: int, counted: int | None, documents: int, is_stale: bool
) -> None:
    zoid = catalog._core.zoid
    with connect(dsn, "test") as connection:
        connection.execute("UPDATE pgcatalog_state SET generation = %s", (generation,))
        if counted is not None:
            connection.execute(
                "INSERT INTO pgcatalog_texts (catalog, text_column, documents, average_words, generation, relation,"
                " counted_from, counted_by) SELECT catalog, 'searchable_text', %s, 1, %s, relation,"
                " pg_current_xact_id(), pg_current_xact_id() FROM pgcatalog_state",
                (documents, counted),
            )
        assert needed(connection, zoid) == ([zoid] if is_stale else [])
        put_needed(connection, zoid, is_long=True)
        assert needed(connection, zoid) == []


def test_catalog_without_texts_needs_no_count(catalog: Any, dsn: str) -> None:
    catalog.delIndex("SearchableText")
    for name in ("Title", "Description"):
        catalog.delIndex(name)
    catalog.manage_catalogClear()
    transaction.commit()
    with connect(dsn, "test") as connection:
        assert needed(connection, catalog._core.zoid) == []


def needed(connection: Any, zoid: int) -> list[int]:
    return WordCount().needed(NeededJobs(executing(connection), zoid))


def test_worker_counts_words(portal: Any, catalog: Any, dsn: str, db: Any) -> None:
    fill(portal)
    assert Worker(db, dsn, is_long=True).run_until_empty() == 1
    assert words_of(dsn, catalog)["river"] == 2
    assert Worker(db, dsn, is_long=True).run_until_empty() == 0


def test_stopped_count_preserves_the_former_one(portal: Any, catalog: Any, dsn: str, monkeypatch: Any) -> None:
    fill(portal)
    count(dsn, catalog)
    monkeypatch.setattr("plone.pgcatalog.fulltext.term_statistics.PORTION", 1)
    create(portal, "Document", "more", title="river again")
    transaction.commit()

    def stop(done: int, total: int, step: str) -> None:
        raise Stopped

    with connect_directly(dsn, "words", 0) as connection, pytest.raises(Stopped):
        count_words(connection, catalog._core.zoid, stop)
    assert words_of(dsn, catalog)["river"] == 2
    assert count(dsn, catalog)
    assert words_of(dsn, catalog)["river"] == 3
