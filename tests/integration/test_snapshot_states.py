"""A snapshot begins with the states of the catalogs, in the message that reads the changes of other connections."""

from collections.abc import Iterator
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.database.generations import REMEMBERED_STATES
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Statement
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.pages import second_connection
from tests.integration.traffic import traced
from typing import Any

import pytest
import transaction


@pytest.fixture
def process(db: Any, dsn: str) -> Iterator[Any]:
    """The database of another process; the storage is opened before an open snapshot would make it wait."""
    with sites.opened(dsn) as other:
        yield other


@pytest.fixture
def portal(process: Any, app: Any) -> Any:
    return app.plone


@pytest.fixture
def reader(portal: Any, process: Any) -> Iterator[tuple[Any, Any]]:
    """(manager, portal) of the other process, which has read the states of the catalogs."""
    with second_connection(process) as (manager, other):
        assert found(other) == []
        yield manager, other


def found(portal: Any) -> list[str]:
    return [brain.getId for brain in portal.portal_catalog.unrestrictedSearchResults(portal_type="Document")]


def searches(portal: Any) -> tuple[int, int]:
    """Return the number of documents found by a search, and the number of its messages, except those for objects."""
    assert portal.portal_catalog._core.indexes
    with traced(portal) as traffic:
        count = len(found(portal))
    return count, traffic[0].round_trips


def save(portal: Any, name: str) -> None:
    create(portal, "Document", name)
    transaction.commit()


def test_states_come_with_the_changes(portal: Any, reader: tuple[Any, Any]) -> None:
    manager, other = reader
    for number in range(3):
        save(portal, f"page{number}")
        with traced(other) as traffic:
            manager.begin()
            [state] = Session.of(other._p_jar).read_states().values()
        assert traffic[0].matching("object_state") == traffic[0].matching("pgcatalog_state")
        assert len(traffic[0].matching("pgcatalog_state")) == 1
        assert searches(other) == (number + 1, 1)
        assert state.generation == other.portal_catalog._core.view().read_state().generation


def test_snapshot_without_changes_reads_no_states(portal: Any, reader: tuple[Any, Any]) -> None:
    manager, other = reader
    with traced(other) as traffic:
        manager.begin()
        Session.of(other._p_jar).read_states()
    assert traffic[0].round_trips == 1


def test_states_are_read_once_per_process(portal: Any, reader: tuple[Any, Any]) -> None:
    manager, other = reader
    with second_connection(other._p_jar.db()) as (second, third):
        save(portal, "page")
        manager.begin()
        with traced(third) as traffic:
            second.begin()
            Session.of(third._p_jar).read_states()
        assert traffic[0].round_trips == 2
        assert traffic[0].matching("pgcatalog_state") == []
        assert found(third) == found(other) == ["page"]


def test_process_that_reads_no_catalog_reads_no_states(portal: Any, process: Any) -> None:
    with second_connection(process) as (manager, other):
        save(portal, "page")
        with traced(other) as traffic:
            manager.begin()
        assert traffic[0].matching("object_state")
        assert traffic[0].matching("pgcatalog_state") == []
        assert found(other) == ["page"]


def test_older_snapshot_still_has_its_states(portal: Any, reader: tuple[Any, Any]) -> None:
    manager, other = reader
    with second_connection(other._p_jar.db()) as (second, third):
        save(portal, "page0")
        manager.begin()
        save(portal, "page1")
        second.begin()
        assert searches(other) == (1, 1)
        assert sorted(found(third)) == ["page0", "page1"]


def test_snapshot_of_a_storage_with_history_reads_states_by_a_message(dsn: str) -> None:
    with sites.opened(dsn, history_preserving=True) as db, second_connection(db) as (manager, other):
        assert found(other) == []
        for number in range(2):
            with sites.inside(db) as portal:
                save(portal, f"page{number}")
            manager.begin()
            assert searches(other) == (number + 1, 2)
        assert not Generations.of(db).remembers


def test_states_of_few_snapshots_are_remembered() -> None:
    generations = Generations()
    for tid in range(1, 3 * REMEMBERED_STATES):
        generations.remember(tid, {tid: None})  # type: ignore[dict-item]
    tids = [tid for tid in range(4 * REMEMBERED_STATES) if generations.states_at(tid) is not None]
    assert tids == list(range(2 * REMEMBERED_STATES, 3 * REMEMBERED_STATES))
    generations.remember(1, {})
    assert generations.states_at(1) is None
    assert list(generations.newest) == [3 * REMEMBERED_STATES - 1]


def test_snapshot_is_one_value_until_a_change(portal: Any) -> None:
    core = portal.portal_catalog._core
    snapshot = core.view().snapshot()
    assert core.search_view().snapshot() is snapshot
    assert snapshot.stamp == core.view().stamp()
    create(portal, "Document", "page")
    assert found(portal) == ["page"]
    changed = core.view().snapshot()
    assert (changed.state, changed.stamp) == (snapshot.state, None)
    assert changed.stored.source != snapshot.stored.source
    transaction.abort()
    assert core.view().snapshot() == core.view().snapshot()
    assert core.view().snapshot().stamp == snapshot.stamp


def test_catalog_without_rows_and_changes_is_empty(portal: Any) -> None:
    core = portal.portal_catalog._core
    view = CatalogView(core.session, 1, core.layout())
    assert view.snapshot() is None
    assert view.statement(lambda stored: Statement("SELECT 1 / 0")) is None
    assert view.fetch(lambda stored: Statement("SELECT 1 / 0")).value() == view.select("rid").value() == []
    assert view.count(CompiledQuery(EVERYTHING, (OLDEST_FIRST,), None, Window())).value() == 0
    assert (view.rows, view.stamp(), view.idx([1]).value()) == (-1, None, {})
