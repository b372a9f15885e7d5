"""The private names of zodb-pgjsonb: their list, and the messages of a process that starts without one of them."""

from collections.abc import Callable
from collections.abc import Iterator
from importlib.metadata import version
from plone.pgcatalog import reader
from plone.pgcatalog import storage
from plone.pgcatalog.storage import snapshots
from plone.pgcatalog.storage import supported
from plone.pgcatalog.storage.publisher import unknown_functions
from scripts.replaced import OF_THE_STORAGE
from scripts.replaced import patch_rows
from types import SimpleNamespace
from typing import Any
from zodb_pgjsonb.instance import PGJsonbStorageInstance
from zodb_pgjsonb.storage import PGJsonbStorage
from zodb_pgjsonb.storage import SharedLoadCache

import ast
import inspect
import pytest
import zodb_json_codec
import zodb_pgjsonb.storage


#: Of other packages: ZODB's, psycopg's and this module's.
OTHERS = {"_connectionMap", "_normal_storage", "_needs_to_join", "_savepoint_storage", "_modified"}


class Database:
    """A database with one connection, whose storage has all names except *lacking*."""

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


@pytest.mark.parametrize("name", [name for name in storage.PRIVATE_NAMES if name != "_main"])
def test_missing_name_is_reported(name: str) -> None:
    storage.require_supported_storage(Database())
    with pytest.raises(storage.UnknownStorage) as raised:
        storage.require_supported_storage(Database(lacking=name))
    assert str(raised.value) == f"zodb-pgjsonb {version('zodb-pgjsonb')} has no {name}, which plone.pgcatalog uses"


def test_list_has_the_names_in_use() -> None:
    nodes = [node for module in (storage, snapshots) for node in ast.walk(ast.parse(inspect.getsource(module)))]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr.startswith("_")}
    # Names of every persistent object are not private to the storage.
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


def test_installed_version_is_known_and_another_one_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert supported.unknown_version() == ""
    assert unknown_functions() == []
    assert hasattr(SharedLoadCache, "poll_advance")
    assert hasattr(PGJsonbStorage, "_ensure_admin_conn")
    monkeypatch.setattr(supported, "version", lambda name: "1.20.0")
    assert supported.unknown_version() == "plone.pgcatalog replaces methods of zodb-pgjsonb 1.19.*, not 1.20.0"


@pytest.fixture
def compared() -> Iterator[None]:
    """The sources of methods are compared again in the test, and after it."""
    supported.unknown_methods.cache_clear()
    yield
    supported.unknown_methods.cache_clear()


@pytest.mark.usefixtures("compared")
def test_methods_tested_with_are_accepted_silently() -> None:
    assert version("zodb-pgjsonb") == supported.TESTED
    assert supported.unknown_methods() == ()
    assert supported.unknown_code() == ""


@pytest.mark.usefixtures("compared")
def test_each_method_of_another_source_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(self: Any, oid: bytes, version: str = "") -> Any: ...

    monkeypatch.setattr(PGJsonbStorageInstance, "load", load)
    monkeypatch.delattr(PGJsonbStorage, "pack")
    monkeypatch.setattr(zodb_json_codec, "encode_zodb_record", lambda record: b"other")
    sentence = supported.unknown_code()
    assert "\n" not in sentence
    named = {
        "instance.PGJsonbStorageInstance.load",
        "storage.PGJsonbStorage.pack",
        "zodb_json_codec.encode_zodb_record",
    }
    assert set(sentence.rpartition(": ")[2].split(", ")) == named


def test_each_replaced_method_has_a_digest() -> None:
    """The list has the methods that the code sets on the storage, overrides in a subclass, delegates or replaces."""
    assert {*supported.METHODS, *supported.CODEC} == {*set_on_the_storage(), *overridden(), *lent(), *DONE_INSTEAD}


#: The method that the replacement of `poll_invalidations` calls for special cases only.
DONE_INSTEAD = {"instance.PGJsonbStorageInstance._poll"}
#: Names in the code -> the objects they stand for.
OWNERS = {
    "PGJsonbStorage": PGJsonbStorage,
    "storage": PGJsonbStorage,
    "instance": PGJsonbStorageInstance,
    "zodb_json_codec": zodb_json_codec,
}


def full_name(owner: Any, name: str) -> str:
    """Return the name of an attribute of *owner*, a class of zodb-pgjsonb or a module, as in the lists."""
    return (
        ".".join([*owner.__module__.split(".")[1:], owner.__name__, name])
        if inspect.isclass(owner)
        else f"{owner.__name__}.{name}"
    )


def set_on_the_storage() -> Iterator[str]:
    for place, module, _ in patch_rows():
        owner, _, name = place.rpartition(".")
        if module in OF_THE_STORAGE and callable(getattr(OWNERS.get(owner), name, None)):
            yield full_name(OWNERS[owner], name)
        if place == "setattr(instance)":
            yield from (full_name(PGJsonbStorageInstance, name) for name in storage.READS)


def overridden() -> Iterator[str]:
    for cls in (reader.ReadOnlyInstance, reader.ReadOnlyStorage, reader.ReadOnlyStorageFactory):
        for name in vars(cls):
            owner = next((base for base in cls.__mro__[1:] if name in vars(base)), object)
            if owner.__module__.startswith("zodb_pgjsonb.") and inspect.isfunction(vars(owner)[name]):
                yield full_name(owner, name)


def lent() -> Iterator[str]:
    """Yield the names of zodb-pgjsonb that are replaced while a storage is opened, or packs."""
    for node in ast.walk(ast.parse(inspect.getsource(reader))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "replaced":
            name = ast.literal_eval(node.args[0])
            # A call of a class runs its __init__.
            yield f"storage.{name}" + ".__init__" * inspect.isclass(getattr(zodb_pgjsonb.storage, name))
    for name in vars(storage._StorageOfPack(PGJsonbStorage, None)):
        if callable(getattr(PGJsonbStorage, name, None)):
            yield full_name(PGJsonbStorage, name)
