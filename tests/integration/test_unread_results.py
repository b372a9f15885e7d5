"""A search answers for the moment of its call, and fails no transaction, whether its result is read or not."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database.errors import HistoryChanged
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.database.errors import ServiceUnavailable
from plone.pgcatalog.results.cache import result_cache
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.editors import editor
from tests.integration.servers import execute
from tests.integration.storage import backend
from tests.integration.storage import terminate
from tests.integration.two_sites import clear
from tests.integration.two_sites import delete
from tests.integration.two_sites import rename
from tests.integration.two_sites import uninstall
from typing import Any
from zope.component.hooks import setSite

import psycopg
import pytest
import transaction


PAGES = 6


def fill(portal: Any) -> None:
    folder = create(portal, "Folder", "folder", title="Folder")
    for number in range(PAGES):
        create(folder, "Document", f"page{number}", title=f"Needle {PAGES - number}")
    create(create(portal, "Folder", "other", title="Other"), "Document", "inner", title="Needle inner")


CONTENT = SHARED = fill

POSITION = "getObjPositionInParent"
#: Python sorts or cuts the rows of these: they are read during the search.
IN_PYTHON: dict[str, dict[str, Any]] = {
    "position": {"path": {"query": "/plone/folder", "depth": 1}, "sort_on": POSITION},
    "position, reversed": {"path": "/plone/folder", "sort_on": POSITION, "sort_order": "reverse"},
    "position in several folders": {"path": "/plone", "sort_on": POSITION},
    "type and position": {"path": "/plone", "sort_on": ["portal_type", POSITION]},
    "first ones by position": {"path": "/plone/folder", "sort_on": POSITION, "sort_limit": 3},
    "negative window": {"portal_type": "Document", "sort_on": "getId", "b_start": -3, "b_size": 5},
}
IN_DATABASE: dict[str, dict[str, Any]] = {
    "path": {"path": "/plone"},
    "sorted": {"portal_type": "Document", "sort_on": "sortable_title"},
    "limited": {"portal_type": "Document", "sort_on": "sortable_title", "sort_limit": 2},
    "ranked": {"SearchableText": "needle"},
    "nothing": {"getId": []},
}
KINDS = IN_PYTHON | IN_DATABASE

Results = dict[str, Any]
Rids = dict[str, list[int]]


def search(portal: Any, kinds: dict[str, dict[str, Any]] = KINDS) -> Results:
    """Return unread results of *kinds*, and unread streams."""
    catalog = portal.portal_catalog
    results = {kind: catalog.unrestrictedSearchResults(**query) for kind, query in kinds.items()}
    return results | {
        "all": catalog.searchAll(),
        "stream": catalog.unrestrictedSearchResults(**IN_DATABASE["sorted"]).iterate(2),
    }


def begun(portal: Any) -> Results:
    """Return a result and a stream whose first rows have been read."""
    results = [portal.portal_catalog.unrestrictedSearchResults(**IN_DATABASE["sorted"]) for _ in range(2)]
    stream = results[0].iterate(2)
    next(stream)
    return {"page": results[1][:2] and results[1], "begun stream": stream}


def rids(results: Results) -> Rids:
    return {kind: [brain.getRID() for brain in result] for kind, result in results.items()}


def after(results: Results) -> dict[str, Any]:
    """Return the record ids of each result, or the type of the error raised by reading it."""
    answers: dict[str, Any] = {}
    for kind, result in results.items():
        try:
            answers |= rids({kind: result})
        except Exception as error:  # noqa: BLE001  the type is what is compared
            answers[kind] = type(error)
    return answers


# -- unread results


def reorder(portal: Any) -> None:
    portal.folder.moveObjectsToTop([f"page{PAGES - 1}"])


def move(portal: Any) -> None:
    portal.other.manage_pasteObjects(portal.folder.manage_cutObjects(["page0", "page3"]))


def rebuild(portal: Any) -> None:
    portal.folder.moveObjectsToTop([f"page{PAGES - 1}"])
    portal.portal_catalog.clearFindAndRebuild()


def leave_site(portal: Any) -> None:
    portal.title = "Left"
    setSite(None)


def change_elsewhere(portal: Any) -> None:
    """Commit in another thread; its snapshot is newer than that of the results."""
    with editor(portal._p_jar.db()) as other:
        other.do(rename)
        other.commit()


def close(portal: Any) -> None:
    transaction.abort()
    portal._p_jar.close()


QUICK = [delete, reorder, leave_site]
SLOW = [rename, move, clear, rebuild, uninstall, change_elsewhere]
#: End of a change -> function of the site and of a savepoint before the change.
ENDS: dict[str, Callable[[Any, Any], None]] = {
    "none": lambda portal, savepoint: None,
    "rollback": lambda portal, savepoint: savepoint.rollback(),
    "abort": lambda portal, savepoint: transaction.abort(),
    "close": lambda portal, savepoint: close(portal),
    "commit": lambda portal, savepoint: transaction.commit(),
}


@pytest.mark.parametrize("change", [*QUICK, *(pytest.param(change, marks=pytest.mark.slow) for change in SLOW)])
def test_unread_result_is_of_the_search(db: Any, change: Callable[[Any], None]) -> None:
    """Each result has the rows of the search, in order; a stream leaves out deleted rows."""
    for name, end in ENDS.items():
        if change is change_elsewhere and name != "commit":
            continue
        with sites.inside(db) as portal:
            expected = rids(search(portal) | begun(portal))
            results = search(portal) | begun(portal)
            savepoint = transaction.savepoint()
            change(portal)
            end(portal, savepoint)
            assert [len(results[kind]) for kind in KINDS] == [len(expected[kind]) for kind in KINDS], name
            if name == "close":
                continue
            answers = after(results)
            for kind in ("stream", "begun stream"):
                found, rows = answers.pop(kind), expected.pop(kind)
                assert found == [rid for rid in rows if rid in found], name
            assert answers == expected, name


# -- unreadable results


ERRORS = [
    AttributeError("a folder is gone"),
    KeyError("path"),
    psycopg.errors.UndefinedTable("relation does not exist"),
    psycopg.errors.InFailedSqlTransaction("current transaction is aborted"),
    SearchTimeout("too slow"),
    ServiceUnavailable("connection lost"),
    RecursionError("maximum recursion depth exceeded"),
]


class Unreadable:
    """A result that raises when it is read."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.error: Exception | None = None

    def materialize(self, ending: bool = False) -> None:
        raise self._error

    def fail(self, error: Exception) -> None:
        self.error = error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_unreadable_result_fails_no_transaction(shared_filled: Any, error: Exception) -> None:
    portal, session = shared_filled, shared_filled.portal_catalog._core.session
    catalog, path = portal.portal_catalog, "/plone/elsewhere"

    def unreadable() -> Unreadable:
        result = Unreadable(error)
        session.open_results.add(result)
        return result

    results = [unreadable()]
    catalog.catalog_object(portal.other, path)  # a change
    savepoint = transaction.savepoint()
    results.append(unreadable())
    savepoint.rollback()
    results.append(unreadable())
    transaction.commit()
    assert path in catalog._catalog.uids
    catalog.uncatalog_object(path)
    transaction.commit()
    results.append(unreadable())
    transaction.abort()
    assert [result.error for result in results] == [error] * 4


def test_lost_history_fails_the_commit(shared_filled: Any) -> None:
    """Its objects may be from lost transactions; only an abort is possible."""
    session = shared_filled.portal_catalog._core.session
    result = Unreadable(HistoryChanged())
    session.open_results.add(result)
    shared_filled.title = "Lost"
    with pytest.raises(HistoryChanged):
        transaction.commit()
    transaction.abort()
    session.open_results.add(result)
    transaction.abort()
    assert shared_filled.title == "Test"


@contextmanager
def lost_connection(portal: Any, dsn: str) -> Iterator[None]:
    terminate(dsn, backend(portal))
    yield


@contextmanager
def renamed_table(portal: Any, dsn: str) -> Iterator[None]:
    relation = portal.portal_catalog._core.view().read_state().relation
    execute(dsn, f'ALTER TABLE "{relation}" RENAME TO gone')
    yield
    execute(dsn, f'ALTER TABLE gone RENAME TO "{relation}"')


@contextmanager
def locked_table(portal: Any, dsn: str) -> Iterator[None]:
    """Lock the table, so that each search waits until its time limit."""
    relation = portal.portal_catalog._core.view().read_state().relation
    with psycopg.connect(dsn) as other:
        other.execute(f'LOCK TABLE "{relation}"')
        yield


FAULTS: dict[Any, type[Exception]] = {
    lost_connection: ServiceUnavailable,
    renamed_table: psycopg.errors.UndefinedTable,
    locked_table: SearchTimeout,
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_result_that_could_not_be_read_raises_that_error(
    dsn: str, db: Any, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    """It never answers from another snapshot, and fails no end of a transaction."""
    sites.override_settings(monkeypatch, search_timeout=0.05)
    for saves in (False, True):
        with sites.inside(db) as portal:
            expected = rids(search(portal))
            transaction.begin()
            result_cache().clear()
            # Rows read at once hold a lock on the table.
            results = search(portal, KINDS if fault is lost_connection else IN_DATABASE)
            if fault is locked_table:
                # These have no time limit.
                del results["all"], results["stream"]
            with fault(portal, dsn):
                if saves and fault is not lost_connection:
                    portal.title = "Saved"
                    transaction.commit()
                transaction.abort()
            transaction.begin()
            assert portal.title == ("Saved" if saves and fault is not lost_connection else "Test")
            answers = after(results)
            error = FAULTS[fault]
            assert error in answers.values()
            # The cache of the process may have an answer.
            assert answers == {kind: error if answers[kind] is error else expected[kind] for kind in results}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_lost_connection_ends_a_transaction_alike_with_unread_results(dsn: str, db: Any, end: str) -> None:
    def outcome(has_results: bool, saves: bool) -> type[Exception] | None:
        with sites.inside(db) as portal:
            result_cache().clear()
            results = search(portal) if has_results else None
            terminate(dsn, backend(portal))
            try:
                savepoint = transaction.savepoint()
                if saves:
                    portal.title = "Saved"
                ENDS[end](portal, savepoint)
            except Exception as error:  # noqa: BLE001  the type is what is compared
                return type(error)
            finally:
                transaction.abort()
                del results
            return None

    for saves in (True, False):
        assert outcome(has_results=True, saves=saves) == outcome(has_results=False, saves=saves)
