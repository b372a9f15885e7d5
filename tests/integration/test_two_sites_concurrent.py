"""While one site is cleared, rebuilt, installed or uninstalled, the other serves: it waits for nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database import schema
from tests.integration import site as sites
from tests.integration.editors import abort
from tests.integration.editors import differences
from tests.integration.editors import Editor
from tests.integration.editors import editor
from tests.integration.two_sites import add_index
from tests.integration.two_sites import clear
from tests.integration.two_sites import clear_index
from tests.integration.two_sites import delete_site
from tests.integration.two_sites import edit
from tests.integration.two_sites import rebuild
from tests.integration.two_sites import reinstall
from tests.integration.two_sites import rename
from tests.integration.two_sites import uninstall
from tests.integration.two_sites import view
from tests.integration.waiting import PATIENCE
from typing import Any

import psycopg
import pytest
import threading
import transaction


pytestmark = pytest.mark.slow


ACTIONS = [clear, rebuild, clear_index, add_index, rename, uninstall, reinstall, delete_site]


@pytest.fixture
def dsn(two_sites_template: str, postgres: Any) -> str:
    return sites.clone(postgres, two_sites_template)


class Held:
    """A commit that has written everything, holds all its locks, and goes no further before it is let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.release = threading.Event()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """The next commit in which our hook has something to write is held behind it."""
    from plone.pgcatalog.indexing.processor import PGCatalogStateProcessor

    original, gate = PGCatalogStateProcessor.finalize, Held()

    def finalize(self: Any, cursor: Any) -> None:
        original(self, cursor)
        if self._managers() and not gate.reached.is_set():
            gate.reached.set()
            assert gate.release.wait(PATIENCE)

    monkeypatch.setattr(PGCatalogStateProcessor, "finalize", finalize)
    yield gate
    gate.release.set()


@contextmanager
def pair(db: Any) -> Iterator[tuple[Editor, Editor]]:
    with editor(db, "plone") as one, editor(db, "second") as other:
        yield one, other


def impatient(site: Any) -> None:
    """From now on, waiting for a lock is an error."""
    site._p_jar._normal_storage.pg_connection.execute("SET lock_timeout = '1ms'")


@pytest.mark.parametrize("action", ACTIONS)
def test_reading_waits_for_nothing_that_the_other_site_commits(db: Any, held: Held, action: Any) -> None:
    """The other's whole commit is written and not committed: queries, metadata and objects come all the same."""
    with pair(db) as (one, other):
        other.do(impatient)
        before = other.do(view)
        one.do(action)
        other.begin()  # holds no lock from here on, so whatever wants one gets it
        committed = one.start(lambda site: transaction.commit())
        assert held.reached.wait(PATIENCE)
        assert other.do(view) == before
        other.begin()
        other.do(lambda site: site._p_jar.cacheMinimize())
        assert other.do(view) == before
        held.release.set()
        committed.result(PATIENCE)
        other.begin()
        assert other.do(view) == before


@pytest.mark.parametrize("action", ACTIONS)
def test_no_commit_waits_for_who_reads_the_other_site(db: Any, action: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "LOCK_TIMEOUT", "1ms")
    with pair(db) as (one, other):
        before = other.do(view)
        one.do(action)
        one.commit()
        assert other.do(view) == before


@pytest.mark.parametrize("action", [clear, rebuild, uninstall, reinstall, delete_site])
def test_a_reader_of_the_site_itself_keeps_what_its_snapshot_has(db: Any, action: Any) -> None:
    """Also one who asks the catalog only afterwards, when its relation is not the current one any more."""
    with editor(db, "plone") as one, editor(db, "plone") as early, editor(db, "plone") as late:
        late.begin()
        before = early.do(view)
        one.do(action)
        one.commit()
        assert early.do(view) == before
        assert late.do(view) == before


@pytest.mark.parametrize("action", [clear, rebuild, add_index, uninstall, delete_site])
def test_the_other_site_writes_meanwhile(db: Any, action: Any) -> None:
    """Both transactions run at the same time, and commit one behind the other, without a conflict."""
    with pair(db) as (one, other):
        # Dexterity names generated interfaces by the site in which the process has met a type first.
        before = other.do(differences)
        one.begin()
        other.begin()
        one.do(action)
        other.do(edit)
        one.commit()
        other.commit()
        assert set(other.do(differences)) <= set(before)
        assert other.do(lambda site: [b.Title for b in site.portal_catalog(Title="edited")]) == ["Edited"]


@pytest.mark.parametrize("action", [clear, rebuild, uninstall])
def test_an_aborted_action_leaves_both_as_they_were(db: Any, action: Any) -> None:
    with pair(db) as (one, other):
        before = one.do(view), other.do(view)
        one.do(action)
        assert other.do(view) == before[1]
        one.do(abort)
        assert (one.do(view), other.do(view)) == before


def test_relations_nobody_can_read_any_more_go(db: Any, dsn: str) -> None:
    """At once when nobody else is reading, else with a later commit of that kind."""

    def relations() -> set[str]:
        with psycopg.connect(dsn) as connection:
            query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^pgcatalog_[0-9a-f]+(_[0-9]+)?$'"
            return {name for (name,) in connection.execute(query)}

    def current() -> set[str]:
        with psycopg.connect(dsn) as connection:
            return {name for (name,) in connection.execute("SELECT relation FROM pgcatalog_state")}

    assert relations() == current()
    with editor(db, "plone") as one:
        with editor(db, "second") as reader:
            reader.do(view)
            one.do(clear)
            one.commit()
            assert len(relations()) == len(current()) + 1
        one.do(uninstall)
        one.commit()
        assert relations() == current()
        assert len(current()) == 1
