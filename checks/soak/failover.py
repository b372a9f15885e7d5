"""The soak's failovers: lost writes, time without answers, and answers of Zopes from lost data."""

from checks.soak.clients import Client
from checks.soak.clients import TIMEOUT
from checks.soak.ledger import ABSENT
from checks.soak.ledger import Page
from checks.soak.ledger import Version
from checks.soak.ledger import word
from checks.soak.probe import Probes
from checks.soak.server import AREA
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from plone.pgcatalog.testing.embedded import dsn_of
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import Standby
from plone.pgcatalog.testing.embedded import with_standby
from psycopg import sql
from random import Random
from typing import Any
from typing import Protocol
from typing import Self

import math
import psycopg
import requests
import shutil
import tempfile
import time


#: Seconds between the end of replication and the end of the primary; more if the clients have written nothing yet.
CUT_OFF = (0.5, 2.0)
#: Minimum of acknowledged writes that a failover must lose, so that stale answers are possible.
LEAST_LOST = 2
#: Longest wait for them.
PATIENCE = 30.0
#: Number of rows compared one by one after a failover, besides those of lost writes.
SAMPLE = 15
ROWS = (
    "SELECT c.path, o.idx ->> 'UID', o.idx ->> 'Title', o.idx ->> 'review_state', o.state ->> 'title'"
    " FROM {} c JOIN object_state o ON o.zoid = c.rid WHERE c.path LIKE %s"
)

SYNCHRONOUS = ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
IS_SYNCHRONOUS = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')"

#: Path below the site -> (UID, title, review state) in the database.
Rows = Mapping[str, tuple[str, str, str]]


class Servers(Protocol):
    """A primary and a standby that can take over; *synchronous*: no acknowledged save may be lost then."""

    synchronous: bool

    @property
    def version(self) -> str:
        """The version of PostgreSQL."""

    def createdb(self, name: str) -> None:
        """Create an empty database."""

    def dsn(self, dbname: str) -> str:
        """Return a DSN that connects to the server that accepts writes."""

    def prepare(self, clients: Sequence[Client], random: Random) -> float:
        """Prepare a failover; return the time before which acknowledged saves have reached the standby."""

    def fail_over(self) -> None:
        """Let the primary fail, and wait until the standby accepts writes in its place."""

    def rejoin(self) -> None:
        """Make the former primary a standby that has all data of the primary."""


class Pair:
    """A primary and its standby at two fixed addresses: one DSN connects to the one that accepts writes.

    *synchronous*: commits wait for the standby, as long as there is one.  An asynchronous one is cut off before it takes
    over, and the clients make writes that it lacks.
    """

    def __init__(self, settings: Mapping[str, str], synchronous: bool = False) -> None:
        self._settings = with_standby(settings)
        self.synchronous = synchronous
        self._folder = tempfile.TemporaryDirectory(prefix="pgcatalog-soak-servers-")
        self.primary: EmbeddedPostgres
        self.standby: Standby
        self._former: EmbeddedPostgres

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        folder.chmod(0o711)  # the server's user may be another one
        self.primary = EmbeddedPostgres(folder / "a", self._settings).start()
        self._start_standby(folder / "b")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.standby.stop()
        self.primary.stop()
        self._folder.cleanup()

    @property
    def version(self) -> str:
        return self.primary.version

    def createdb(self, name: str) -> None:
        self.primary.createdb(name)

    def dsn(self, dbname: str) -> str:
        return dsn_of(self.primary, self.standby, dbname=dbname)

    def prepare(self, clients: Sequence[Client], random: Random) -> float:
        if self.synchronous:
            return math.inf
        safe = time.monotonic()
        self.standby.catch_up()
        self.standby.cut_off()
        wait_for_writes(clients, random.uniform(*CUT_OFF))
        return safe

    def fail_over(self) -> None:
        """Kill the primary, promote the standby."""
        self._former = self.primary
        self._former.kill()
        self.standby.promote()
        self.primary = self.standby

    def rejoin(self) -> None:
        """Create a new standby in place of the former primary."""
        place = self._former.wanted_dir
        assert place is not None
        self._former.stop()
        shutil.rmtree(place)
        self._start_standby(place)

    def _start_standby(self, place: Path) -> None:
        # The setting is made after the copy: the standby does not have it when it is promoted, and waits for no other.
        self.standby = self.primary.standby(place).start()
        if self.synchronous:
            with psycopg.connect(self.primary.dsn(), autocommit=True) as connection:
                for statement in SYNCHRONOUS:
                    connection.execute(statement)
                while connection.execute(IS_SYNCHRONOUS).fetchone() != (True,):
                    time.sleep(0.05)


@dataclass
class Failover:
    """The effects of a failover: *lost* are acknowledged writes that are missing in the database."""

    outage: tuple[float, float] = (0.0, 0.0)
    lost: list[str] = field(default_factory=list)
    #: faults: a write lost although the standby had it, or made by no client
    wrong: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    compared: int = 0
    #: seconds from one answer to the next, to reads and to writes
    silent: dict[str, float] = field(default_factory=dict)


def fail_over(
    servers: Servers, dsn: str, clients: Sequence[Client], urls: Sequence[str], threads: int, random: Random
) -> Failover:
    """Let the primary of *servers* fail, and compare the answers of the Zopes at *urls* with the database.

    The clients rest while their records are set to the remaining writes.  The former primary is a standby at the end.
    """
    failover = Failover()
    safe = servers.prepare(clients, random)
    with Probes(urls) as probes:
        seen = [len(client.stale) for client in clients]
        begin = time.monotonic()
        servers.fail_over()
        failover.outage = begin, time.monotonic()
        with clients[0].gate.closed():
            failover.silent = probes.seconds_without_answers(failover.outage[1])
            if not servers.synchronous:
                for client, number in zip(clients, seen, strict=True):
                    del client.stale[number:]  # their records still had the lost writes
            rows = read_rows(dsn)
            before = settle(clients, rows, safe, failover)
            compare(failover, rows, before, urls, threads, random)
    failover.wrong += probes.lost
    servers.rejoin()
    return failover


def wait_for_writes(clients: Sequence[Client], seconds: float) -> None:
    """Wait for *seconds*, and until a client has written something that is acknowledged."""
    begin = time.monotonic()
    time.sleep(seconds)
    while time.monotonic() < begin + PATIENCE:
        written = [page for client in clients for page in list(client.pages) if page.written > begin and page.certain]
        if len(written) >= LEAST_LOST:
            return
        time.sleep(0.05)


def connected(dsn: str) -> psycopg.Connection[Any]:
    """Return a connection to *dsn*, which leads to the former primary until the balancer has seen the new one."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return psycopg.connect(dsn)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def read_rows(dsn: str) -> Rows:
    """Return the rows of the area by SQL; raise ValueError if catalog and objects do not agree."""
    with connected(dsn) as connection:
        # One snapshot: a rebuild may replace the relation meanwhile.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state").fetchall()
        query = sql.SQL(ROWS).format(sql.Identifier(relation))
        found = connection.execute(query, [f"/Plone/{AREA}/%/%"]).fetchall()
    for path, _, title, _, of_object in found:
        if title != of_object:
            raise ValueError(f"{path}: {title!r} in the catalog, {of_object!r} in the object")
    return {path.split("/", 2)[2]: (uid, title, state or "") for path, uid, title, state, _ in found}


def settle(clients: Iterable[Client], rows: Rows, safe: float, failover: Failover) -> list[Version]:
    """Set the records of *clients* to the remaining writes; return the lost versions.

    Writes acknowledged before the time *safe* had reached the standby.
    """
    by_uid = {uid: Version(path, title, state) for path, (uid, title, state) in rows.items()}
    lost = []
    for client in clients:
        for page in client.pages:
            actual = by_uid.get(page.uid, ABSENT) if page.uid else at(rows, page)
            if actual in page.possible:
                continue
            line = f"{page.uid}: {actual} instead of {page.possible}"
            failover.lost.append(line)
            lost.append(page.version)
            was_interrupted = max(page.written, page.carried) >= failover.outage[0]
            if actual not in page.past and not (was_interrupted and actual in page.repeated):
                failover.wrong.append(f"phantom: {line}; before: {page.past}; {'; '.join(page.events)}")
            elif page.written < safe:
                failover.wrong.append(f"lost, though the standby had it: {line}")
            page.possible = [actual] if page.certain else [actual, *page.possible]
            if actual is ABSENT:
                client.retire(page)
    return lost


def at(rows: Rows, page: Page) -> Version:
    """Return the version of a *page* with unknown UID."""
    for version in [*page.possible, *page.past]:
        if version.path is not None and version.path in rows:
            _, title, state = rows[version.path]
            return Version(version.path, title, state)
    return ABSENT


# -- answers of the Zopes


def compare(
    failover: Failover,
    rows: Rows,
    lost: Iterable[Version],
    urls: Sequence[str],
    threads: int,
    random: Random,
    sample: int = SAMPLE,
) -> None:
    """Compare the answers of each Zope with *rows*: all of them, a *sample* one by one, and those of *lost* versions.

    As many requests as a Zope has *threads* are sent at a time: each thread has caches of its own.
    """
    chosen = random.sample(sorted(rows), min(sample, len(rows)))
    paths = dict.fromkeys([*chosen, *(version.path for version in lost if version.path)])
    titles = dict.fromkeys([*(rows[path][1] for path in chosen), *(version.title for version in lost if version.title)])
    for url in urls:
        asker = Asker(url, rows)
        with ThreadPoolExecutor(threads) as pool:
            listings = [pool.submit(asker.listing) for _ in range(2 * threads)]
            objects = [pool.submit(asker.object, path) for path in paths]
            searches = [pool.submit(asker.search, title) for title in titles]
            found = [future.result() for future in (*listings, *objects, *searches)]
        failover.compared += len(found)
        failover.stale += [f"{url}: {line}" for line in found if line]


class Asker:
    """Client of one Zope; each method returns the difference between an answer and *rows*, "" if there is none."""

    def __init__(self, url: str, rows: Rows) -> None:
        self._url = url
        self._rows = rows
        #: Zopes find the new primary by themselves, within the time in which errors are excused.
        self._deadline = time.monotonic() + TIMEOUT

    def listing(self) -> str:
        """Compare the whole area, hits and metadata."""
        query = {"metadata_fields": ["UID", "review_state", "getPath"], "b_size": 100_000, "path.depth": -1}
        found = {
            path: (item["UID"], item["title"], item["review_state"] or "")
            for item in self._get(f"{AREA}/@search", query).json()["items"]
            if (path := item["getPath"].split("/", 2)[2]).count("/") > 1
        }
        wrong = {path for path in found.keys() | self._rows.keys() if found.get(path) != self._rows.get(path)}
        return "; ".join(f"{path} listed as {found.get(path)}, is {self._rows.get(path)}" for path in sorted(wrong))

    def object(self, path: str) -> str:
        """Compare the object at *path*."""
        response = self._get(path, {})
        if response.status_code == 200:
            data = response.json()
            found = data["UID"], data["title"], data["review_state"] or ""
        else:  # missing, or elsewhere
            found = None
        return "" if found == self._rows.get(path) else f"{path} is served as {found}, is {self._rows.get(path)}"

    def search(self, title: str) -> str:
        """Compare the hits of the word that only *title* has."""
        query = {"SearchableText": word(title), "metadata_fields": "getPath", "b_size": 1000}
        found = {i["getPath"].split("/", 2)[2]: i["title"] for i in self._get("@search", query).json()["items"]}
        expected = {path: name for path, (_, name, _) in self._rows.items() if word(name) == word(title)}
        return "" if found == expected else f"{word(title)!r} finds {found}, is {expected}"

    def _get(self, path: str, query: dict[str, Any]) -> requests.Response:
        """Return the answer; retry while the database is unavailable, up to a TimeoutError."""
        while time.monotonic() < self._deadline:
            with suppress(requests.ConnectionError, requests.Timeout):
                response = requests.get(
                    f"{self._url}/{path}",
                    params=query,
                    headers={"Accept": "application/json"},
                    auth=("admin", "admin"),
                    allow_redirects=False,
                    timeout=TIMEOUT,
                )
                if response.status_code < 500:
                    return response
            time.sleep(0.2)
        raise TimeoutError(f"{self._url}/{path} gives no answer after a failover")
