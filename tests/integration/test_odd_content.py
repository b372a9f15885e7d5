"""Content with values PostgreSQL cannot store: it is saved, it is found, and one log line reports what was trimmed."""

from collections.abc import Callable
from DateTime import DateTime
from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import UTC
from decimal import Decimal
from Products.ZCatalog.Catalog import CatalogError
from tests.integration import site as sites
from tests.integration.bad_values import Odd
from tests.integration.content import create
from tests.integration.odd import fill
from tests.integration.odd import found
from tests.integration.odd import indexed
from tests.integration.odd import INDEXES
from tests.integration.oracle import make_oracle
from threading import get_ident
from types import SimpleNamespace
from typing import Any
from zope.i18nmessageid import Message

import contextlib
import logging
import Missing
import pytest
import transaction
import uuid


SHARED = fill


@pytest.fixture
def site(shared_portal: Any) -> Any:
    """A site whose catalog indexes ``odd`` in every way, for a manager; the tests change one page."""
    sites.return_to(shared_portal)
    return shared_portal


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings of this thread: others may still count searches of a former test's database."""
    return [
        r.getMessage()
        for r in caplog.records
        if r.name.startswith("plone.pgcatalog") and r.levelno >= logging.WARNING and r.thread == get_ident()
    ]


def check_found(portal: Any, path: str) -> Any:
    """Check that the object at *path* is found by all its ordinary values; return its brain."""
    catalog = portal.portal_catalog
    obj = portal.unrestrictedTraverse(path)
    for query in (
        {"path": {"query": path, "depth": 0}},
        {"getId": obj.getId(), "portal_type": obj.portal_type},
        {"UID": obj.UID()},
    ):
        assert found(catalog, **query) == [path]
    (brain,) = catalog.unrestrictedSearchResults(UID=obj.UID())
    assert brain.getId == obj.getId()
    assert brain.getObject().aq_base is obj.aq_base
    return brain


VALUES: list[Any] = [
    *(None, True, 0, 2**70, 10**400, -0.5, float("nan"), float("-inf"), Decimal("1.5"), Decimal("NaN"), 1j, Odd()),
    *("", "a\0b", "\ud800", "%s", "2026-13-45", "k" * 10_000, "ü" * 88_000, b"bytes", b"\xff\xfe", bytearray(b"x")),
    *("needle " + "word\0word " * 1000, "needle " + "x" * 3000, Missing.Value, uuid.UUID(int=1), timedelta(1)),
    *(("x" * 10_000, "y" * 10_000, "z"), ["k" * 88_000], [f"keyword {n}" for n in range(5000)], range(3)),
    [["nested"], ("tuple",)],
    *([None, 1, "a", 1.5, Odd(), b"x", float("nan")], [DateTime("2026/01/01 UTC"), datetime(2026, 1, 1, tzinfo=UTC)]),
    *({1, 2}, {}, {"a": {"b": {"c": [1, {"d": object}]}}}, {1: 2, (3,): "x"}, datetime.min, date.max),
    *(DateTime("0001/01/01 UTC"), DateTime("4008/12/31 UTC"), DateTime(-(10**11)), datetime(2026, 1, 1)),
    *((), [], ("x" * 100_000,), -0.0, Message("hello", domain="plone", default="Hello ${name}", mapping={"name": "x"})),
]


def deep(levels: int, kind: type = list) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"level": value} if kind is dict else kind([value])
    return value


class Circle(list[Any]):
    """A list that contains itself."""

    def __init__(self) -> None:
        super().__init__([self])


NESTED = [deep(20), deep(500), deep(100_000), deep(60, dict), deep(2_000, dict), deep(60, tuple), Circle()]


def is_same(one: Any, other: Any) -> bool:
    """Return whether the values, their types and the parts of a message are equal; NaN equals itself."""
    names = ("domain", "default", "mapping")
    return type(one) is type(other) and (
        (one == other and all(getattr(one, name, None) == getattr(other, name, None) for name in names))
        or repr(one) == repr(other)
    )


@pytest.mark.parametrize("value", [*VALUES, *NESTED], ids=lambda value: type(value).__name__)
def test_any_value_is_saved_and_found_as_a_whole_or_reported(site: Any, caplog: Any, value: Any) -> None:
    catalog, page = site.portal_catalog, site.page
    with indexed("odd", lambda obj: value), indexed("odd_start", lambda obj: value):
        page.title = "Some page"
        page.reindexObject()
        assert found(catalog, Title="some") == ["/plone/page"]  # before the commit
        pending = catalog(getId="page")[0].odd
        transaction.commit()
    lines = warnings(caplog)
    named = [(line.split(": ")[0], line.split(": ")[1]) for line in lines]
    assert {path for path, _ in named} <= {"/plone/page"}
    assert {name for _, name in named} <= {*INDEXES, "odd", "odd_start"}
    assert len(set(lines)) == len(lines)

    brain = check_found(site, "/plone/page")
    reported = {name for _, name in named}
    assert is_same(brain.odd, pending)
    assert is_same(brain.odd, value) or (brain.odd is Missing.Value and "odd" in reported)
    catalog.getIndexDataForRID(brain.getRID())
    for name in (*INDEXES, "odd", "odd_start"):
        index = catalog._catalog.getIndex(name)
        len(index)
        if name not in ("odd-text", "odd-range"):
            list(index.uniqueValues(withLengths=True))
        if index.meta_type not in ("ZCTextIndex",):
            found(catalog, portal_type="Document", sort_on=name)
    assert len(catalog) == len(catalog.unrestrictedSearchResults(path="/"))

    if value != "" and isinstance(value, str | int | float | bytes):
        for name in ("odd-field", "odd-uuid"):
            assert found(catalog, **{name: value}) == ["/plone/page"] or name in reported
    if value != "" and isinstance(value, str):
        assert found(catalog, **{"odd-keyword": value}) == ["/plone/page"]
        assert not found(catalog, **{"odd-keyword": value + "x"})
        assert found(catalog, **{"odd-field": ["other", value]}) == ["/plone/page"]
        assert "odd-text" not in reported or "needle" not in value or found(catalog, **{"odd-text": "needle"})


def test_far_dates_are_saved_and_found(portal: Any) -> None:
    page, now = create(portal, "Document", "page"), DateTime()
    for year in (1000, 1969, 4007, 4008, 9999):
        date = DateTime(f"{year:04}/06/30 UTC")
        page.setEffectiveDate(date)
        page.reindexObject()
        transaction.commit()
        assert check_found(portal, "/plone/page").effective == date
        around = {"query": [date - 1, date + 1], "range": "min:max"}
        assert found(portal.portal_catalog, effective=around) == ["/plone/page"], year
        assert found(portal.portal_catalog, portal_type="Document", sort_on="effective") == ["/plone/page"], year
        for catalog in (portal.portal_catalog, make_oracle(portal)):
            # Beyond the index's ceiling, the year 2500, an end counts as open: every user sees the page.
            assert ("/plone/page" in found(catalog, effectiveRange=now)) is (year < now.year() or year > 2500), year


def test_objects_with_odd_ids_are_saved_and_found(portal: Any) -> None:
    catalog = portal.portal_catalog
    ids = ("with space", "a~b", "100%", "50%_off", "ümläut", "a'b", 'a"b', "%s", "x" * 1000)
    for id in ids:
        create(create(portal, "Folder", id, title="Odd folder"), "Document", id, title="Odd child")
    for _ in range(2):
        for id in ids:
            path, child = f"/plone/{id}", f"/plone/{id}/{id}"
            check_found(portal, path)
            check_found(portal, child)
            assert set(found(catalog, path=path)) == {path, child}
            assert found(catalog, path={"query": path, "depth": 1}) == [child]
        transaction.commit()
    for id in ids:
        portal[id][id].title = "Changed"
        portal[id][id].reindexObject(idxs=["Title"])
    assert set(found(catalog, Title="changed")) == {f"/plone/{id}/{id}" for id in ids}
    transaction.commit()
    for id in ids:
        portal[id].manage_renameObject(id, "plain")
        assert set(found(catalog, path=f"/plone/{id}")) == {f"/plone/{id}", f"/plone/{id}/plain"}
    transaction.commit()
    portal.manage_delObjects(list(ids))
    for _ in range(2):
        assert found(catalog, portal_type=["Document", "Folder"]) == []
        transaction.commit()


def raising(error: Exception) -> Callable[[Any], Any]:
    def value(obj: Any) -> Any:
        raise error

    return value


@pytest.mark.parametrize("kind", ["index", "column"])
def test_attribute_error_of_an_indexer_is_no_value_and_another_one_reaches_the_caller(portal: Any, kind: str) -> None:
    catalog = portal.portal_catalog
    if kind == "index":
        catalog.addIndex("odd", "FieldIndex")
    else:
        catalog.addColumn("odd")
    page = create(portal, "Document", "page", title="Before")
    with indexed("odd", raising(AttributeError("odd"))):
        page.reindexObject()
        transaction.commit()
    for use in (lambda: found(catalog, Title="broken"), transaction.commit):
        with indexed("odd", raising(ValueError("an indexer is broken"))):
            page.title = "Broken"
            page.reindexObject()
            with pytest.raises(ValueError, match="an indexer is broken"):
                use()
            transaction.abort()
    assert found(catalog, Title="before") == ["/plone/page"]
    assert not found(catalog, Title="broken")
    page.title = "After"
    page.reindexObject()
    transaction.commit()
    assert found(catalog, Title="after") == ["/plone/page"]


NAMES = (
    *("odd-name", "with space", "Ümläut", "数据", 'quote"s', 'x"; DROP TABLE object_state; --', "it's", "%s", "{0}"),
    *("@date", "select", "rid", "idx", "zoid", "Path", "ODD", "n" * 300),
)


@pytest.mark.parametrize("kind", ["FieldIndex", "KeywordIndex", "DateRangeIndex"])
def test_odd_names_of_indexes_and_columns(portal: Any, kind: str) -> None:
    catalog = portal.portal_catalog
    page = create(portal, "Document", "page")
    for name in NAMES:
        extra = SimpleNamespace(since_field="created", until_field="created") if kind == "DateRangeIndex" else None
        catalog.addIndex(name, kind, extra)
        catalog.addColumn(name)
    with contextlib.ExitStack() as stack:
        for name in NAMES:
            stack.enter_context(indexed(name, lambda obj, name=name: f"value of {name}"))
        page.reindexObject()
        for _ in range(2):
            brain = check_found(portal, "/plone/page")
            for name in NAMES:
                assert brain[name] == f"value of {name}"
                value = page.created() if kind == "DateRangeIndex" else f"value of {name}"
                assert "/plone/page" in found(catalog, **{name: value})
                assert found(catalog, portal_type="Document", sort_on=name) == ["/plone/page"]
            transaction.commit()
    for name in NAMES:
        catalog.delIndex(name)
        catalog.delColumn(name)
    transaction.commit()
    check_found(portal, "/plone/page")


def test_impossible_names_are_refused(portal: Any) -> None:
    catalog = portal.portal_catalog
    for name in ("a\0b", "\ud800"):
        with pytest.raises(CatalogError):
            catalog.addIndex(name, "FieldIndex")
        with pytest.raises(CatalogError):
            catalog.addColumn(name)
    create(portal, "Document", "page")
    transaction.commit()
    check_found(portal, "/plone/page")
