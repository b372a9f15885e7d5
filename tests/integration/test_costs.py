"""Costs of a search, of a batch of reads and of a commit: statements, round trips, plan shapes.  Counted, never timed."""

from contextlib import suppress
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.discovery import suggest
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.view import RowsFetch
from plone.pgcatalog.sql.expression import Statement
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import put_words
from tests.integration.relation import fill_relation
from tests.integration.traffic import traced
from typing import Any

import psycopg
import pytest
import transaction


def fill(portal: Any) -> None:
    for number in range(30):
        create(portal, "Document", f"page{number:02}", title=f"Page {number}")


CONTENT = SHARED = fill


@pytest.fixture
def filled(portal: Any) -> Any:
    """The site, whose objects this connection has already loaded."""
    portal.page00.reindexObject()
    transaction.commit()
    transaction.begin()
    return portal


def search(portal: Any, **query: Any) -> Any:
    return portal.portal_catalog.unrestrictedSearchResults(**query)


def shown(results: Any) -> list[Any]:
    """Return the values that a listing shows of the first ten rows."""
    return [(b.getPath(), b.Title, b.created is not None, b.Subject) for b in results[:10]]


PAGE = {"portal_type": "Document", "sort_on": "getId", "b_size": 10}


def test_the_first_page_of_a_connection_takes_one_round_trip(filled: Any) -> None:
    with traced(filled) as traffic:
        assert shown(search(filled, **PAGE))[3] == ("/plone/page03", "Page 3", True, ())
    ours = traffic[0].matching("pgcatalog")
    # The savepoint and the catalogs' states are in its message.
    assert len(ours) == 1, ours


def test_the_first_page_of_a_snapshot_takes_one_with_its_metadata(filled: Any) -> None:
    """The savepoint and the page are in one message.

    Even after a write of another connection: the state came with the changes.
    """
    shown(search(filled, **PAGE))
    filled.page03.title = "Changed"
    filled.page03.reindexObject()
    transaction.commit()
    transaction.begin()
    with traced(filled) as traffic:
        assert shown(search(filled, **PAGE))[3][1] == "Changed"
    [ours] = traffic[0].matching("pgcatalog")
    assert "SAVEPOINT" in ours
    assert "pgcatalog_state" not in ours


def test_page_takes_one_round_trip_with_its_metadata(filled: Any) -> None:
    len(search(filled, portal_type="Folder"))
    for query in (PAGE, {"portal_type": "Document"}, {"SearchableText": "page"}):
        result_cache().clear()
        with traced(filled) as traffic:
            assert shown(search(filled, **query))[3][2]
        assert traffic[0].round_trips == 1, query


def test_brains_read_one_by_one_take_one_round_trip(filled: Any) -> None:
    len(search(filled, portal_type="Folder"))
    with traced(filled) as traffic:
        assert [brain.Title for brain in search(filled, portal_type="Document", sort_on="getId")][2] == "Page 2"
        results = search(filled, portal_type="Document", sort_on="created")
        assert {results[number].Title for number in range(30)} == {f"Page {number}" for number in range(30)}
    assert traffic[0].round_trips == 2


def test_commit_of_a_modified_document_takes_three_messages_of_ours(filled: Any) -> None:
    """The catalogued rows are read in one message, and two statements write: the generation, and the row.

    The object's own upsert writes idx.  The generation is advanced by a statement that can be prepared; the lock timeout is
    set in the same message.
    """
    page = filled.page03
    page.title = "Changed"
    page.reindexObject()
    with traced(filled) as traffic:
        transaction.commit()
    statements = [text.strip() for text in traffic[0].statements]
    end = statements.index('"COMMIT"')
    [read] = [text for text in statements[:end] if "object_state WHERE zoid" not in text]
    assert "SAVEPOINT" in read
    # The next snapshot reads the changes.
    changed = [text for text in statements[end:] if "SELECT zoid, tid FROM object_state" not in text]
    ours = [text for text in changed if "pgcatalog_" in text or "lock_timeout" in text]
    assert [text.count(";") for text in ours] == [0, 0, 0]
    assert "set_config('lock_timeout'" in ours[0]
    assert "UPDATE pgcatalog_state" in ours[1]
    words = ("INSERT", "UPDATE", "DELETE")
    writes = [t for t in statements if "pgcatalog_" in t and "SAVEPOINT" not in t and any(word in t for word in words)]
    assert len(writes) == 2, writes
    [upsert] = traffic[0].matching("INSERT INTO object_state")
    assert "idx" in upsert


def test_a_read_only_transaction_writes_nothing(filled: Any) -> None:
    with traced(filled) as traffic:
        len(filled.portal_catalog.unrestrictedSearchResults(portal_type="Document"))
        transaction.commit()
    assert not [t for t in traffic[0].statements if any(w in t for w in ("INSERT", "UPDATE ", "DELETE", "CREATE"))]


# -- reads that are sent together


@pytest.fixture
def pages(shared_filled: Any) -> Any:
    """The site, whose pages are not cached in this transaction."""
    assert len(shared_filled.portal_catalog.unrestrictedSearchResults(getId="nothing")) == 0
    result_cache().clear()
    return shared_filled


def read(portal: Any, sql: str, seconds: float | None = None) -> RowsFetch:
    return portal.portal_catalog._core.search_view().fetch(lambda _: Statement(sql), seconds=seconds)


def page(portal: Any) -> list[str]:
    return [brain.getId for brain in portal.portal_catalog.unrestrictedSearchResults(getId="page03")[:5]]


def batch(portal: Any) -> Any:
    return portal.portal_catalog._core.session.batch()


def test_a_batch_takes_one_message(pages: Any) -> None:
    with traced(pages) as traffic, batch(pages):
        first, second = read(pages, "SELECT 1"), read(pages, "SELECT 2", 5.0)
        assert page(pages) == ["page03"]
        assert (first.value(), second.value()) == ([(1,)], [(2,)])
    assert traffic[0].round_trips == 1, traffic[0].statements


def test_end_of_a_batch_sends_unread_fetches(pages: Any) -> None:
    with traced(pages) as traffic:
        with batch(pages):
            first, second = read(pages, "SELECT 1"), read(pages, "SELECT 2")
        assert (first.answer, second.answer) == ([(1,)], [(2,)])
    assert traffic[0].round_trips == 1, traffic[0].statements


def test_a_batch_in_a_batch_is_part_of_it(pages: Any) -> None:
    with traced(pages) as traffic, batch(pages):
        with batch(pages):
            first = read(pages, "SELECT 1")
        assert first.answer is None
        assert (page(pages), first.answer) == (["page03"], [(1,)])
    assert traffic[0].round_trips == 1, traffic[0].statements


def test_reads_without_a_batch_are_sent_alone(pages: Any) -> None:
    first = read(pages, "SELECT 1")
    with traced(pages) as traffic:
        assert page(pages) == ["page03"]
        assert first.value() == [(1,)]
    assert traffic[0].round_trips == 2, traffic[0].statements
    assert len(traffic[0].matching("SELECT 1")) == 1


@pytest.mark.parametrize("is_sent_by_a_search", [True, False])
def test_failing_fetch_raises_when_its_result_is_read(pages: Any, is_sent_by_a_search: bool) -> None:
    with batch(pages):
        wrong, right = read(pages, "SELECT 1 / 0"), read(pages, "SELECT 2")
        assert not is_sent_by_a_search or page(pages) == ["page03"]
    with pytest.raises(psycopg.errors.DivisionByZero):
        wrong.value()
    assert right.value() == [(2,)]
    assert len(pages.portal_catalog.unrestrictedSearchResults(getId="nowhere")) == 0


def test_timed_out_fetch_is_not_repeated(pages: Any) -> None:
    with traced(pages) as traffic:
        with batch(pages):
            slow = read(pages, "SELECT pg_sleep(10)", 0.05)
            assert page(pages) == ["page03"]
        with pytest.raises(SearchTimeout):
            slow.value()
    assert len(traffic[0].matching("pg_sleep")) == 1


def test_an_error_inside_ends_the_batch(pages: Any) -> None:
    with suppress(psycopg.errors.DivisionByZero), batch(pages):
        first = read(pages, "SELECT 1")
        pages.portal_catalog._core.view().select("1 / 0").value()
        raise AssertionError("no error")
    assert not pages.portal_catalog._core.session.collected.is_open
    assert first.value() == [(1,)]


def test_reads_with_pending_changes_are_sent_alone(pages: Any) -> None:
    create(pages, "Document", "pending")
    with batch(pages):
        first = read(pages, "SELECT 1")
        assert page(pages) == ["page03"]
        assert first.answer is None
    assert first.value() == [(1,)]


def test_unread_fetch_ends_with_its_transaction(pages: Any) -> None:
    with batch(pages):
        read(pages, "SELECT 'former'")
        transaction.commit()
        transaction.begin()
        with traced(pages) as traffic:
            assert page(pages) == ["page03"]
    assert traffic[0].matching("former") == []


# -- plans


@pytest.fixture(scope="module")
def big(site_template: str, postgres: Any) -> tuple[str, str]:
    """(dsn, relation) of a catalog with 20,000 generated rows."""
    dsn = sites.clone(postgres, site_template)
    with connect_directly(dsn, "test", 0) as connection:
        return dsn, fill_relation(connection, 20_000)


@pytest.mark.parametrize(
    ("where", "order"),
    [
        ("uid = 'c4ca4238a0b923820dcc509a6f75849b'", "rid"),
        ("path_value = '/plone/f1/d1'", "rid"),
        ("parent_path = '/plone/f1'", "rid"),
        ("path_value >= '/plone/f1/' AND path_value < '/plone/f10'", "rid"),
        ("subject && ARRAY['tag42']", "rid"),
        ("searchable_text @@ 'word17'", "rid"),
        ("(searchable_text @@ 'word17') OR (path = '/plone/f1/d1') OR (uid = md5('7'))", "rid"),
        ("modified >= '2022-04-01'", "modified, rid"),
        ("portal_type = 'Event' AND review_state = 'published' AND modified IS NOT NULL", "modified DESC, rid"),
    ],
)
def test_queries_use_an_index(big: tuple[str, str], where: str, order: str) -> None:
    dsn, relation = big
    with psycopg.connect(dsn) as connection:
        plan = connection.execute(
            f'EXPLAIN SELECT rid, path FROM "{relation}" WHERE {where} ORDER BY {order} LIMIT 20'
        ).fetchall()
    text = "\n".join(line for (line,) in plan)
    assert "Seq Scan" not in text, text
    if order.startswith("modified"):
        assert "modified" in text.partition("Index Scan")[2], text


def test_words_are_looked_for_by_the_text_index(big: tuple[str, str]) -> None:
    """For a user who may see all rows, and one who may see none; neighbour words only for words without a match."""
    dsn, relation = big
    seen_sql = suggest.SEEN.format(
        relation=f'"{relation}"',
        column="searchable_text",
        frequent=20,
        sample=200,
        rows=suggest.ROWS,
        lexeme=suggest.LEXEME.format(word="candidate.word"),
        where="allowed_roles IN (SELECT number FROM pgcatalog_sets WHERE vals && %s)",
    )
    statement = suggest.THESE_OR_NEAR.format(near=suggest.near_sql(None, requested=suggest.NOT_SEEN), seen=seen_sql)
    counted = (1, "searchable_text")
    with psycopg.connect(dsn) as connection:
        put_words(connection, *counted, dict.fromkeys(("word17", "word18", "word21"), 9))
        for role, seen in (("Anonymous", {"word17", "word21"}), ("Manager", set())):
            restricted = (*counted, [role], [role])
            near = suggest.near_values(None, ["word17", "wrod21"], *counted, 2)
            params = (*restricted, ["word17", "wrod21"], *counted, *near, *restricted)
            assert {word for word, _ in connection.execute(statement, params)} == seen
            plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {statement}", params))
            assert f"Bitmap Index Scan on {relation}_searchable_text" in plan
            # Except for the samples of rows, which are the beginning of a scan.
            assert plan.count(f"Seq Scan on {relation}") == 2, plan
        connection.rollback()
