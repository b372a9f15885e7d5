"""Hostile query values and search texts, and the permitted reactions to them."""

from DateTime import DateTime
from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import UTC
from DateTime.interfaces import DateTimeError
from decimal import Decimal
from Products.ZCatalog.Catalog import CatalogError
from typing import Any
from zope.i18nmessageid import Message
from ZPublisher.HTTPRequest import record

import Missing
import uuid


#: Exceptions a caller may have to catch: errors that explain the fault of the query.
CLEAR = (CatalogError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, DateTimeError, RuntimeError)


class Odd:
    """An object without order or a meaningful value."""

    def __repr__(self) -> str:
        return "Odd()"


class Hostile(Odd):
    """An object whose every method fails."""

    def __repr__(self) -> str:
        return "Hostile()"

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __eq__(self, other: object) -> bool:
        raise TypeError("no comparison")

    __hash__ = None  # type: ignore[assignment]


def a_record(**values: Any) -> Any:
    query = record()
    query.__dict__.update(values)
    return query


SCALARS: list[Any] = [
    *(None, True, 0, -1, 2**31, 2**63, 2**70, -(2**70), 10**400, 1.5, 1e300, float("nan"), float("inf")),
    *(float("-inf"), Decimal("1.5"), Decimal("NaN"), 1j, "", " ", "a\0b", "\0", "\ud800", "a\udfffb", "'", '"', "\\"),
    *("%s", "%(x)s", "{}", "x" * 10_000, "ä" * 2_000, "\U0010ffff", "2026-13-45", "2026-02-30 25:61", "10000-01-01"),
    *("not a date", b"bytes", b"\xff\xfe", bytearray(b"x"), Odd(), Odd, len, Hostile(), Missing.Value),
    Message("hello", domain="plone"),
    uuid.UUID(int=1),
    DateTime("2026/01/01 UTC"),
    DateTime("9999/12/31 UTC"),
    DateTime("0001/01/01 UTC"),
    datetime(2026, 1, 1),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime.min,
    datetime.max.replace(tzinfo=UTC),
    *(date(2026, 1, 1), date.max, timedelta(1), range(3), {1, 2}, frozenset(["Document"]), {}, {"a": 1}),
]

#: Queries of one index.
VALUES: list[Any] = [
    *SCALARS,
    [],
    (),
    [None],
    [[]],
    [["Document"]],
    [["a"], ["b", ["c"]]],
    [{}],
    [1, "a", None],
    ["a", None],
    ("Document", 1.5),
    [Odd(), Odd()],
    [float("nan"), 1.0],
    [b"x", "x"],
    [True, "True"],
    [DateTime("2026/01/01 UTC"), "2026"],
    ["x"] * 5000,
    *({"query": value} for value in ([], None, {}, Odd(), ["a", 1], [[1], [2]], "a\0b", "\ud800", 2**70)),
    {"not": Odd()},
    {"not": None},
    {"not": []},
    {"not": [None]},
    {"not": "a\0b"},
    {"not": 2**70},
    {"not": [["a"]]},
    *({"not": "Document", "query": None}, {"query": "Document", "not": [None, 1, "x"]}),
    *({"query": "a", "range": "min"}, {"query": 1, "range": "max"}, {"query": None, "range": "min"}),
    *({"query": [], "range": "min:max"}, {"query": ["a", 1], "range": "min:max"}),
    *({"query": [1, 2], "range": "min:max"}, {"query": [2**70, -(2**70)], "range": "min:max"}),
    {"query": ["b\0", "a\ud800"], "range": "min:max"},
    {"query": [float("nan"), 1], "range": "min:max"},
    {"query": Odd(), "range": "min"},
    *({"query": "a", "range": "bogus"}, {"query": "a", "range": 5}, {"query": "a", "range": None}),
    *({"query": "a", "range": ["min"]}, {"range": "min"}, {"query": "a", "operator": "xor"}),
    *({"query": "a", "operator": None}, {"query": "a", "operator": 1}),
    *({"query": ["Document", "Folder"], "operator": "AND"}, {"query": "a", "bogus": 1}, {"query": "a", 1: 2}),
    *({"query": "/plone", "level": "x"}, {"query": "/plone", "level": None}, {"query": "/plone", "level": 2**70}),
    *({"query": "/plone", "depth": "x"}, {"query": "/plone", "depth": None}, {"query": "/plone", "depth": 2**70}),
    *({"query": "/plone", "depth": -5}, {"query": "/plone", "navtree": "x", "navtree_start": "y"}),
    {"query": "/plone", "navtree": 1, "navtree_start": 2**70},
    {"query": [("/plone", 0), ("my_folder", "x")]},
    {"query": [("/plone",), ()]},
    {"query": ("my_folder", 1)},
    a_record(),
    a_record(query="Document"),
    a_record(query=Odd(), range="min"),
    a_record(bogus=1),
]

TEXTS: list[str] = [
    *("", " ", "\t\n", "*", "?", "**", "*a", "a*b*", "?a", "a*?*", "(", ")", "()", "((page)", "(page", "page)"),
    *("(page OR", '"', '""', '"page', 'page"', '"page one', '" "', '"*"', "AND", "OR", "NOT", "and", "AND AND"),
    *("page AND", "AND page", "page OR", "OR page", "NOT page", "page NOT one", "page AND NOT"),
    *("page AND NOT NOT one", "NOT NOT page", "-page", "- page", "page -one", "--", "page & one", "page | one"),
    *("!page", "page:*", "page:A", "page <-> one", "page <2> one", "'page'", "''", "page\\", "\\", "\\'", "%", "_"),
    *("%s %(x)s", "{page}", "[page]", "page;one", "page,one", "page/one", "a.b.c", "me@example.org", "c++", "#"),
    *("$1", "@", "~", "^", "`", "<b>page</b>", "&nbsp;", "\0", "pa\0ge", "\ud800", "page\udfff", "\ufeffpage"),
    *("\u200bpage", "\U0001f600", "数据库", "数据 AND 目录", "straße OR ÜBER", "e\u0301", "1", "1e5", "-1"),
    *(
        "page " * 1000,
        "x" * 3000,
        "page OR " * 600 + "one",
        "(" * 200 + "page" + ")" * 200,
        "(" * 2000,
        '"page one" ' * 100,
    ),
    *("p* OR a* OR t*", "the", 'super* AND expi* AND "a phrase" AND "and"'),
]


def answer(catalog: Any, query: Any = None, method: str = "unrestrictedSearchResults", **kw: Any) -> Any:
    """Return the paths found, or the exception raised, up to the last brain."""
    try:
        return [brain.getPath() for brain in getattr(catalog, method)(query, **kw)]
    except Exception as error:  # noqa: BLE001  which exception it is is the point
        return error
