"""A request has one snapshot, and reads return the values of a FileStorage."""

from collections.abc import Iterator
from contextlib import suppress
from hypothesis import example
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from io import BytesIO
from pathlib import Path
from persistent.mapping import PersistentMapping
from plone.pgcatalog import storage
from plone.pgcatalog.database.prepared import BEGIN
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.storage import publisher
from tests.integration import site as sites
from tests.integration.publishing import handlers
from tests.integration.storage import clear_storage_cache
from transaction import TransactionManager
from typing import Any
from ZPublisher import WSGIPublisher
from ZPublisher.HTTPRequest import HTTPRequest
from ZPublisher.HTTPResponse import HTTPResponse

import pytest
import transaction


SHARED = ("one", "two", "three")
SCRIPTS = (0, 1)
#: Functions of a transaction manager.
TRANSACT = ["begin", "commit", "abort", "savepoint"]

Step = tuple[Any, ...]


class Failed(Exception):
    """Raised to end a request."""


def make_numbers(db: Any) -> None:
    with db.transaction() as writing:
        writing.root()["numbers"] = numbers = PersistentMapping()
        for name in (*SHARED, "own0", "own1", "request"):
            numbers[name] = PersistentMapping(value=0)


class World:
    """A database, another process on it, and the values returned by its reads."""

    def __init__(self, db: Any, other: Any) -> None:
        self.db = db
        self.other = other
        self.saved = 0
        self.jars: dict[int, Any] = {}
        #: the value of each read, in order
        self.seen: list[Any] = []
        #: the values read after the end of each request, before its connection was closed
        self.seen_at_end: list[list[Any]] = []

    def save(self) -> None:
        """Have the other process set all shared numbers to the next one."""
        self.saved += 1
        with self.other.transaction() as writing:
            for name in SHARED:
                writing.root()["numbers"][name]["value"] = self.saved

    def run(self, steps: list[Step]) -> None:
        """Run *steps*, each the name of a method, or of a function of a transaction manager, and its arguments."""
        self.seen, self.seen_at_end = [], []
        try:
            for name, *args in steps:
                if name in TRANSACT:
                    self.transact(name, *args)
                else:
                    getattr(self, name)(*args)
        finally:
            for script in SCRIPTS:
                self.close(script)

    # -- scripts

    def open(self, script: int) -> None:
        if script not in self.jars:
            self.jars[script] = self.db.open(TransactionManager())

    def close(self, script: int) -> None:
        if script in self.jars:
            self.transact("abort", script)
            self.jars.pop(script).close()

    def transact(self, name: str, script: int) -> None:
        if script in self.jars:
            getattr(self.jars[script].transaction_manager, name)()

    def write(self, script: int) -> None:
        if script in self.jars:
            self.jars[script].root()["numbers"][f"own{script}"]["value"] += 1

    def read(self, script: int, name: str, forgets: bool) -> None:
        if script in self.jars:
            self.seen.append(self.look(self.jars[script], name, forgets))

    def look(self, jar: Any, name: str, forgets: bool) -> int:
        """Return the number *name*, read from the database if *forgets*, else from memory if cached."""
        if forgets:
            jar.cacheMinimize()
            if storage.is_supported(jar):
                clear_storage_cache(jar)
        return int(jar.root()["numbers"][name]["value"])

    # -- requests

    def request(self, steps: list[Step], fails: bool, goes_on: str = "") -> None:
        """Publish a request that runs *steps*; at its end, and once more after another save, it reads all numbers.

        There it may begin another transaction, by the function of the name *goes_on*.
        """
        with suppress(Failed), WSGIPublisher.load_app((self.application, "Zope", False)) as (numbers, *_):
            jar = numbers._p_jar

            def at_end(event: Any) -> None:
                self.seen_at_end.append([self.look(jar, name, False) for name in SHARED])
                self.save()
                self.seen_at_end[-1] += [self.look(jar, name, True) for name in SHARED]
                if goes_on:
                    getattr(transaction, goes_on)()
                    self.seen += [self.look(jar, name, False) for name in SHARED]

            request = new_request()
            ends = handlers(IPubSuccess=at_end, IPubFailure=at_end)
            with ends, WSGIPublisher.transaction_pubevents(request, request.response):
                for step in steps:
                    self.step_of_request(jar, *step)
                if fails:
                    raise Failed

    def application(self) -> Any:
        """Return the root object of a request, as Zope's application wrapper does."""
        return self.db.open().root()["numbers"]

    def step_of_request(self, jar: Any, name: str, *args: Any) -> None:
        if name == "read":
            self.seen.append(self.look(jar, *args))
        elif name == "write":
            jar.root()["numbers"]["request"]["value"] += 1
        elif name == "save":
            self.save()
        else:
            getattr(transaction, name)()


def new_request() -> HTTPRequest:
    environ = {"SERVER_NAME": "nohost", "SERVER_PORT": "80", "REQUEST_METHOD": "GET"}
    return HTTPRequest(BytesIO(), environ, HTTPResponse(stdout=BytesIO()))


@pytest.fixture(scope="module")
def worlds(zope: None, postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, World]]:
    """Our storage, and a FileStorage, which has one process."""
    dsn = postgres.createdb("request_snapshots")
    folder: Path = tmp_path_factory.mktemp("oracle")
    with sites.opened(dsn) as ours, sites.opened(dsn) as other, sites.opened_in_file(folder) as stock:
        for db in (ours, stock):
            make_numbers(db)
        yield World(ours, other), World(stock, stock)


names = st.sampled_from(SHARED)
scripts = st.sampled_from(SCRIPTS)
steps_of_requests = st.lists(
    st.one_of(
        st.tuples(st.just("read"), names, st.booleans()),
        st.tuples(st.sampled_from(["write", "save", *TRANSACT])),
    ),
    max_size=6,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["open", "close", "write", *TRANSACT]), scripts),
        st.tuples(st.just("read"), scripts, names, st.booleans()),
        st.tuples(st.just("save")),
        st.tuples(
            st.just("request"), steps_of_requests, st.booleans(), st.sampled_from(["", "begin", "commit", "abort"])
        ),
    ),
    max_size=20,
)
READ = [("read", 0, name, forgets) for name in SHARED for forgets in (False, True)]


@given(steps=steps)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@example(steps=[("open", 0), ("save",), ("begin", 0), *READ])
@example(steps=[("open", 0), *READ, ("save",), ("abort", 0), *READ, ("save",), ("commit", 0), *READ])
@example(steps=[("request", [], False), ("save",), ("open", 0), ("save",), ("begin", 0), *READ])
@example(steps=[("request", [("commit",)], False), ("open", 0), ("save",), ("begin", 0), *READ])
@example(steps=[("request", [("read", "one", False), ("save",), ("begin",), ("read", "one", False)], True)])
@example(steps=[("save",), ("request", [(*step[:1], *step[2:]) for step in READ], False)])
@example(steps=[("request", [], False, "begin"), ("request", [], True, "begin")])
@example(steps=[("request", [], False, "commit"), ("request", [], True, "abort")])
@example(steps=[("request", [("write",), ("save",), ("commit",), ("read", "two", False)], False)])
def test_reads_equal_those_of_a_file_storage(worlds: tuple[World, World], steps: list[Step]) -> None:
    ours, stock = worlds
    for world in worlds:
        world.run(steps)
    assert ours.seen == stock.seen
    assert len(ours.seen_at_end) == len(stock.seen_at_end)
    for numbers in ours.seen_at_end:
        # One snapshot, of objects in memory and of loaded ones.
        assert len(set(numbers)) == 1
        assert numbers[0] <= ours.saved


@pytest.mark.parametrize(("is_known", "number"), [(True, 1), (False, 3)])
def test_publisher_decides_the_number_of_snapshots(
    worlds: tuple[World, World], monkeypatch: pytest.MonkeyPatch, is_known: bool, number: int
) -> None:
    """Zope's publisher begins one; an unknown publisher begins two more, at its begin and at its end."""
    ours, _ = worlds
    begun = []
    begin = PreparedStatements.run

    def noted(prepared: Any, statements: Any, before: Any = (), *args: Any, **options: Any) -> Any:
        begun.extend(command for command in before if command == BEGIN)
        return begin(prepared, statements, before, *args, **options)

    if not is_known:
        monkeypatch.setattr(WSGIPublisher, "load_app", publisher._load_app)
    monkeypatch.setattr(PreparedStatements, "run", noted)
    monkeypatch.setattr(ours, "save", lambda: None)
    ours.run([("request", [], False)])
    assert len(begun) == number
