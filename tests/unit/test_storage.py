"""The private names of zodb-pgjsonb: which there are, and what a process says that starts without one of them."""

from collections.abc import Callable
from collections.abc import Iterator
from importlib.metadata import version
from plone.pgcatalog import storage
from types import SimpleNamespace
from typing import Any
from zodb_pgjsonb.instance import PGJsonbStorageInstance
from zodb_pgjsonb.storage import PGJsonbStorage
from zodb_pgjsonb.storage import SharedLoadCache

import ast
import inspect
import pytest


#: Of others than zodb-pgjsonb: ZODB's, psycopg's and this module's.
OTHERS = {"_connectionMap", "_normal_storage", "_needs_to_join", "_savepoint_storage", "_modified"}


class Database:
    """A database with one connection, whose storage has all names but *lacking*."""

    def __init__(self, lacking: str = "") -> None:
        self.instance = SimpleNamespace()
        for name in storage.PRIVATE_NAMES:
            if name != lacking:
                place = self.instance
                *parents, last = name.split(".")
                for parent in parents:
                    place = vars(place).setdefault(parent, SimpleNamespace())
                vars(place).setdefault(last, SimpleNamespace())

    def _connectionMap(self, function: Callable[[Any], None]) -> None:
        function(SimpleNamespace(_normal_storage=self.instance))


def test_a_storage_with_all_names_will_do() -> None:
    storage.require_known_storage(Database())


@pytest.mark.parametrize("name", [name for name in storage.PRIVATE_NAMES if name != "_main"])
def test_a_missing_name_is_told(name: str) -> None:
    with pytest.raises(storage.UnknownStorage) as raised:
        storage.require_known_storage(Database(lacking=name))
    assert str(raised.value) == f"zodb-pgjsonb {version('zodb-pgjsonb')} has no {name}, which plone.pgcatalog uses"


def test_the_list_has_what_is_used() -> None:
    nodes = list(ast.walk(ast.parse(inspect.getsource(storage))))
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr.startswith("_")}
    # What every persistent object has is no secret of the storage.
    used = {name for name in used if not name.startswith("_p_")}
    ours = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    listed = {part for name in storage.PRIVATE_NAMES for part in name.split(".") if part.startswith("_")}
    assert used - ours - OTHERS <= listed
    methods = {name for name in storage.READS if not hasattr(PGJsonbStorageInstance, name)}
    assert not methods


def test_the_installed_one_is_known() -> None:
    assert storage.unknown_version() == ""
    assert hasattr(SharedLoadCache, "poll_advance")
    assert hasattr(PGJsonbStorage, "_ensure_admin_conn")


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "version", lambda name: "1.20.0")
    assert storage.unknown_version() == "plone.pgcatalog replaces methods of zodb-pgjsonb 1.19.*, not 1.20.0"


@pytest.fixture
def compared() -> Iterator[None]:
    """The sources of methods are compared anew in the test, and after it."""
    storage.unknown_methods.cache_clear()
    yield
    storage.unknown_methods.cache_clear()


@pytest.mark.usefixtures("compared")
def test_methods_that_the_tests_were_run_with_are_silent() -> None:
    assert version("zodb-pgjsonb") == storage.RUN
    assert storage.unknown_methods() == ()
    assert storage.unknown_code() == ""


@pytest.mark.usefixtures("compared")
def test_each_method_of_another_source_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(self: Any, oid: bytes, version: str = "") -> Any: ...

    monkeypatch.setattr(PGJsonbStorageInstance, "load", load)
    monkeypatch.delattr(PGJsonbStorage, "pack")
    sentence = storage.unknown_code()
    assert sentence.endswith(": instance.PGJsonbStorageInstance.load, storage.PGJsonbStorage.pack")
    assert "\n" not in sentence


def test_each_replaced_method_has_a_digest() -> None:
    names = {name.rpartition(".")[2] for name in storage.METHODS}
    assert {*storage.READS, "new_oid", "poll_invalidations", "pack", "new_instance"} <= names
