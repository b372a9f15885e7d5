"""Databases whose history changes under running Zopes: failovers that lose commits, and restored dumps.

A ``Process`` is a Zope as far as the database can see: a ZODB.DB with caches of its own; each call is a request.
"""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from contextlib import suppress
from pathlib import Path
from plone.pgcatalog.testing.embedded import dsn_of
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from plone.pgcatalog.testing.embedded import with_standby
from tests.integration import site as sites
from tests.integration.content import create
from transaction.interfaces import TransientError
from typing import Any
from zope.event import notify
from zope.traversing.interfaces import BeforeTraverseEvent

import itertools
import psycopg
import shutil
import subprocess
import transaction


#: A request is repeated three times, as by Zope.
ATTEMPTS = 4
PAGES = 3
_numbers = itertools.count(1)


class Process:
    """A Zope on the database of *db*."""

    def __init__(self, db: Any) -> None:
        self.db = db

    def do(self, action: Callable[..., Any], *args: Any) -> Any:
        """Return the result of ``action(site, *args)`` in a request of its own without changes."""
        return self._request(lambda site: action(site, *args))[1]

    def save(self, action: Callable[..., Any], *args: Any) -> int:
        """Commit the changes of *action*; return the number of repetitions."""

        def saved(site: Any) -> None:
            action(site, *args)
            transaction.commit()

        return self._request(saved)[0]

    def _request(self, action: Callable[[Any], Any]) -> tuple[int, Any]:
        """Return (number of repetitions, result of *action*), repeated as Zope repeats a request."""
        for attempt in range(ATTEMPTS):
            with suppress(TransientError), sites.inside(self.db) as site:
                notify(BeforeTraverseEvent(site, site.REQUEST))
                return attempt, action(site)
            transaction.abort()
        raise AssertionError(f"{action} fails for ever")


@contextmanager
def process(dsn: str, **options: Any) -> Iterator[Process]:
    """Yield a new Process; *options* are options of its storage."""
    with sites.opened(dsn, **options) as db:
        yield Process(db)


class Cluster:
    """A primary and a standby; ``fail_over`` makes the standby the primary, ``renew`` makes it a new standby."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._free = [folder / "b", folder / "a"]
        self._used: dict[EmbeddedPostgres, Path] = {}
        self.primary = self._keep(EmbeddedPostgres(self._free[-1], with_standby(TEST_SETTINGS)))
        self.standby: EmbeddedPostgres | None = None

    def _keep(self, server: EmbeddedPostgres) -> EmbeddedPostgres:
        self._used[server.start()] = self._free.pop()
        return server

    def renew(self) -> None:
        """Create a standby that streams."""
        if self.standby is not None:
            self._remove(self.standby)
        self.standby = self._keep(self.primary.standby(self._free[-1]))

    def _remove(self, server: EmbeddedPostgres) -> None:
        server.stop()
        self._free.append(self._used.pop(server))
        shutil.rmtree(self._free[-1])

    def stop(self) -> None:
        for server in [*self._used]:
            self._remove(server)

    def dsn(self, dbname: str) -> str:
        assert self.standby is not None
        return dsn_of(self.primary, self.standby, dbname=dbname)

    def cut_off(self) -> None:
        """Stop replication: later commits will be lost."""
        assert self.standby is not None
        self.standby.catch_up()
        self.standby.cut_off()

    def fail_over(self) -> None:
        """Kill the primary; the standby takes over, without the commits that it has not received."""
        assert self.standby is not None
        former, self.primary, self.standby = self.primary, self.standby, None
        former.kill()
        self.primary.promote()
        self._remove(former)


class Failover(ExitStack):
    """A database on a cluster that will lose the commits between ``fork`` and ``lose``, and Zopes on it."""

    def __init__(self, cluster: Cluster, template: str, keeps_history: bool) -> None:
        super().__init__()
        self.cluster, self.keeps_history = cluster, keeps_history
        cluster.renew()
        self.name = f"history_{next(_numbers)}"
        cluster.primary.createdb(self.name, template)
        self.dsn = cluster.dsn(self.name)
        self.callback(self.end)

    def process(self) -> Process:
        """Return a new process."""
        return self.enter_context(process(self.dsn, history_preserving=self.keeps_history))

    def fork(self) -> None:
        self.cluster.cut_off()

    def lose(self) -> None:
        self.cluster.fail_over()

    def end(self) -> None:
        self.cluster.primary.dropdb(self.name)


class Restore(Failover):
    """The same loss by pg_dump, and pg_restore into the same database."""

    def _run(self, program: str, dsn: str, *options: str) -> None:
        command = [str(self.cluster.primary._binaries / program), "-d", dsn, *options]
        subprocess.run(command, check=True, capture_output=True, text=True)

    @property
    def _file(self) -> str:
        return str(self.cluster.folder / f"{self.name}.dump")

    def fork(self) -> None:
        self._run("pg_dump", self.cluster.primary.dsn(self.name), "-Fc", "-f", self._file)

    def lose(self) -> None:
        dsn = self.cluster.primary.dsn(self.name)
        self._run("pg_restore", dsn, "--clean", "--if-exists", "--single-transaction", self._file)

    def restore_into(self, server: EmbeddedPostgres) -> str:
        """Restore into a new database of *server* as well; return its DSN."""
        dsn = server.createdb(self.name)
        self._run("pg_restore", dsn, self._file)
        return dsn

    def end(self) -> None:
        Path(self._file).unlink(missing_ok=True)
        super().end()


# -- actions


def fill(site: Any) -> None:
    """Create the pages that the histories change."""
    for number in range(PAGES):
        create(site, "Document", f"page{number}", title=f"old {number}", subject=("old",))


def change(site: Any, number: int, word: str) -> None:
    page = site[f"page{number}"]
    page.title = f"{word} {number}"
    page.setSubject((word,))
    page.reindexObject()


def change_object(site: Any, number: int, word: str) -> None:
    """Change an object without cataloguing it."""
    site[f"page{number}"].description = word


def delete(site: Any, number: int) -> None:
    site.manage_delObjects([f"page{number}"])


def make(site: Any, portal_type: str, word: str) -> None:
    create(site, portal_type, "made", title=word, subject=(word,))


# -- observations


def answers(site: Any) -> dict[str, Any]:
    """Return the answers of *site* about its pages, in each of the ways that involve a cache."""
    catalog = site.portal_catalog
    ours = {"path": {"query": "/plone", "depth": 1}, "sort_on": "getId"}
    words = ("old", "lost", "new", "saved")
    objects = [site[id] for id in sorted(site.objectIds()) if id.startswith(("page", "made"))]
    facets = catalog.facets(ours, ["Subject", "portal_type"])
    return {
        "brains": [row(brain) for brain in catalog.unrestrictedSearchResults(ours)],
        "one by one": [[row(b) for b in catalog.unrestrictedSearchResults(getId=f"page{n}")] for n in range(PAGES)],
        "hits": {word: [b.getPath() for b in catalog.unrestrictedSearchResults(Title=word)] for word in words},
        "lengths": {word: len(catalog.unrestrictedSearchResults(Subject=word)) for word in words},
        "facets": {name: dict(facet) for name, facet in facets.items()},
        "values": {name: list(catalog.uniqueValuesFor(name)) for name in ("Subject", "portal_type")},
        "rows of the catalog": len(catalog),
        "objects": [(o.getId(), o.portal_type, o.title, o.description, o.Subject()) for o in objects],
    }


def row(brain: Any) -> tuple[Any, ...]:
    return brain.getPath(), brain.Title, brain.Subject, brain.portal_type, brain.modified, brain.UID


def counter(site: Any) -> tuple[Any, ...]:
    """Return the counters that ETags and RAM caches of Plone use as the state of the catalog."""
    catalog = site.portal_catalog
    return catalog.getCounter(), catalog._catalog.getIndex("Title").getCounter()


def next_xid(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        [(xid,)] = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        return int(xid)


def use_up_xids(dsn: str, until: int) -> None:
    """Advance the transaction ids, so that the next writing transaction has the id *until*."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(until - next_xid(dsn)):
            connection.execute("SELECT pg_current_xact_id()")
    assert next_xid(dsn) == until


def xmin(dsn: str, zoid: int) -> int:
    """Return the id of the transaction that wrote the object *zoid*."""
    with psycopg.connect(dsn) as connection:
        [(xid,)] = connection.execute("SELECT xmin::text::bigint FROM object_state WHERE zoid = %s", [zoid])
        return int(xid)
