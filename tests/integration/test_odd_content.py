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
from tests.integration.odd import Extra
from tests.integration.odd import fill
from tests.integration.odd import found
from tests.integration.odd import indexed
from tests.integration.odd import INDEXES
from tests.integration.oracle import make_oracle
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
    return [
        r.getMessage() for r in caplog.records if r.name.startswith("plone.pgcatalog") and r.levelno >= logging.WARNING
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
    Message("untranslated", domain="plone", default="Translated"),
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


@pytest.mark.parametrize("value", [*VALUES, *NESTED], ids=lambda value: type(value).__name__)
def test_any_value_is_saved_and_found_as_a_whole_or_reported(
    site: Any, caplog: pytest.LogCaptureFixture, value: Any
) -> None:
    catalog, page = site.portal_catalog, site.page
    with indexed("odd", lambda obj: value), indexed("odd_start", lambda obj: value):
        page.title = "Some page"
        page.reindexObject()
        assert found(catalog, Title="some") == ["/plone/page"]  # before the commit
        transaction.commit()
    lines = warnings(caplog)
    named = [(line.split(": ")[0], line.split(": ")[1]) for line in lines]
    assert {path for path, _ in named} <= {"/plone/page"}
    assert {name for _, name in named} <= {*INDEXES, "odd", "odd_start"}
    assert len(set(lines)) == len(lines)

    brain = check_found(site, "/plone/page")
    metadata = brain.odd
    if metadata is Missing.Value and value is not Missing.Value:
        assert ("/plone/page", "odd") in named
    catalog.getIndexDataForRID(brain.getRID())
    for name in (*INDEXES, "odd", "odd_start"):
        index = catalog._catalog.getIndex(name)
        len(index)
        if name not in ("odd-text", "odd-range"):
            list(index.uniqueValues(withLengths=True))
        if index.meta_type not in ("ZCTextIndex",):
            found(catalog, portal_type="Document", sort_on=name)
    assert len(catalog) == len(catalog.unrestrictedSearchResults(path="/"))

    reported = {name for _, name in named}
    if value != "" and isinstance(value, str | int | float | bytes):
        for name in ("odd-field", "odd-uuid"):
            assert found(catalog, **{name: value}) == ["/plone/page"] or name in reported
    if value != "" and isinstance(value, str):
        assert found(catalog, **{"odd-keyword": value}) == ["/plone/page"]
        assert not found(catalog, **{"odd-keyword": value + "x"})
        assert found(catalog, **{"odd-field": ["other", value]}) == ["/plone/page"]
        assert "odd-text" not in reported or "needle" not in value or found(catalog, **{"odd-text": "needle"})


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, (2, 3)], "b": {"c": None}},
        *({1: "int key", (1, 2): "tuple key"}, {1, 2, 3}, b"\x00\xff", "a\0b\ud800c", float("inf"), float("-inf")),
        *(2**70, -0.0, DateTime("9999/12/31 23:59:59 UTC")),
        datetime(9999, 12, 31, 23, 59, tzinfo=UTC),
        ("x" * 100_000,),
        Message("hello", domain="plone", default="Hello ${name}", mapping={"name": "x"}),
        *(Missing.Value, [], (), "", None, False),
    ],
    ids=ascii,
)
def test_metadata_are_returned_unchanged(site: Any, value: Any) -> None:
    with indexed("odd", lambda obj: value):
        site.page.reindexObject()
        pending = site.portal_catalog(getId="page")[0].odd
        transaction.commit()
    kept = site.portal_catalog(getId="page")[0].odd
    for answer in (pending, kept):
        assert type(answer) is type(value)
        assert answer == value
    if isinstance(value, Message):
        assert (kept.domain, kept.default, kept.mapping) == (value.domain, value.default, value.mapping)


def test_object_without_json_form_is_missing_and_reported(site: Any, caplog: pytest.LogCaptureFixture) -> None:
    with indexed("odd", lambda obj: Odd()):
        site.page.reindexObject()
        transaction.commit()
    assert site.portal_catalog(getId="page")[0].odd is Missing.Value
    (line,) = [line for line in warnings(caplog) if "JSON" in line]
    assert line.startswith("/plone/page: odd: ignored")
    assert "Odd" in line


# -- real content


@pytest.mark.slow
def test_a_very_long_text_is_searchable_by_its_beginning(portal: Any, caplog: pytest.LogCaptureFixture) -> None:
    from plone.app.textfield import RichTextValue

    words = " ".join(f"word{n}" for n in range(500_000))
    assert len(words) > 5_000_000
    page = create(portal, "Document", "page", title="Long")
    caplog.clear()
    page.text = RichTextValue(f"<p>beginning {words}</p>", "text/html", "text/html")
    page.reindexObject()
    transaction.commit()
    assert found(portal.portal_catalog, SearchableText="beginning") == ["/plone/page"]
    assert found(portal.portal_catalog, SearchableText="word7 AND long") == ["/plone/page"]
    (line,) = warnings(caplog)
    assert line.startswith("/plone/page: SearchableText: ")
    assert "too long" in line
    page.text = RichTextValue("<p>short</p>", "text/html", "text/html")
    page.reindexObject()
    transaction.commit()
    assert len(warnings(caplog)) == 1
    assert found(portal.portal_catalog, SearchableText="short") == ["/plone/page"]
    assert not found(portal.portal_catalog, SearchableText="beginning")


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


@pytest.mark.parametrize(
    "rule", ["nonsense", "RRULE:FREQ=NEVER", "RRULE:FREQ=DAILY;COUNT=x", "RRULE:", "\0", "\ud800", 5, Odd()]
)
def test_a_broken_recurrence_rule_leaves_the_start(site: Any, caplog: pytest.LogCaptureFixture, rule: Any) -> None:
    start = datetime(2026, 6, 1, 8, 0, tzinfo=UTC)
    with indexed("odd_start", lambda obj: start), indexed("odd_rule", lambda obj: rule):
        site.page.reindexObject()
        transaction.commit()
    check_found(site, "/plone/page")
    assert found(site.portal_catalog, odd_start=start) == ["/plone/page"]
    assert found(site.portal_catalog, portal_type="Document", sort_on="odd_start") == ["/plone/page"]
    (line,) = warnings(caplog)
    assert line.startswith("/plone/page: odd_start: the recurrence rule is invalid")


def test_many_and_long_keywords(portal: Any) -> None:
    keywords = ("k" * 10_000, "k" * 10_000 + "x", "ü" * 88_000, *(f"tag {n}" for n in range(2000)))
    create(portal, "Document", "page", subject=keywords)
    transaction.commit()
    assert check_found(portal, "/plone/page").Subject == keywords
    for keyword in (*keywords[:3], "tag 0", "tag 1999"):
        assert found(portal.portal_catalog, Subject=keyword) == ["/plone/page"]
    assert not found(portal.portal_catalog, Subject="k" * 9_999)
    assert len(portal.portal_catalog.uniqueValuesFor("Subject")) == len(keywords)


# -- indexers


def raising(error: Exception) -> Callable[[Any], Any]:
    def value(obj: Any) -> Any:
        raise error

    return value


def test_indexer_that_raises_attribute_error_has_no_value(portal: Any) -> None:
    catalog = portal.portal_catalog
    catalog.addIndex("odd", "FieldIndex")
    catalog.addColumn("odd")
    page = create(portal, "Document", "page")
    with indexed("odd", lambda obj: "value"):
        page.reindexObject()
        transaction.commit()
    assert "/plone/page" in found(catalog, odd="value")
    with indexed("odd", raising(AttributeError("odd"))):
        page.reindexObject()
        assert "/plone/page" not in found(catalog, odd="value")
        transaction.commit()
    assert "/plone/page" not in found(catalog, odd="value")
    assert check_found(portal, "/plone/page").odd is Missing.Value


@pytest.mark.parametrize("kind", ["index", "column"])
def test_other_exception_of_an_indexer_reaches_the_caller(portal: Any, kind: str) -> None:
    catalog = portal.portal_catalog
    if kind == "index":
        catalog.addIndex("odd", "FieldIndex")
    else:
        catalog.addColumn("odd")
    page = create(portal, "Document", "page", title="Before")
    transaction.commit()
    with indexed("odd", raising(ValueError("an indexer is broken"))):
        page.title = "Broken"
        page.reindexObject()
        with pytest.raises(ValueError, match="an indexer is broken"):
            found(catalog, Title="broken")
        transaction.abort()
        page.title = "Broken"
        page.reindexObject()
        with pytest.raises(ValueError, match="an indexer is broken"):
            transaction.commit()
        transaction.abort()
    assert found(catalog, Title="before") == ["/plone/page"]
    assert not found(catalog, Title="broken")
    page.title = "After"
    page.reindexObject()
    transaction.commit()
    assert found(catalog, Title="after") == ["/plone/page"]


# -- names of indexes and columns

NAMES = (
    *("odd-name", "with space", "Ümläut", "数据", 'quote"s', 'x"; DROP TABLE object_state; --', "it's", "%s", "{0}"),
    *("@date", "select", "rid", "idx", "zoid", "Path", "ODD", "n" * 300),
)


@pytest.mark.parametrize("kind", ["FieldIndex", "KeywordIndex", "DateRangeIndex"])
def test_odd_names_of_indexes_and_columns(portal: Any, kind: str) -> None:
    catalog = portal.portal_catalog
    page = create(portal, "Document", "page")
    for name in NAMES:
        extra = Extra(since_field="created", until_field="created") if kind == "DateRangeIndex" else None
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
