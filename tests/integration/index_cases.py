"""Indexes and values for ``test_index_values_oracle``: all values that ZCatalog indexes without an error."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from DateTime.DateTime import DateTime
from decimal import Decimal
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.registry import BUILT_IN
from Products.DateRecurringIndex.index import DateRecurringIndex
from Products.PluginIndexes.BooleanIndex.BooleanIndex import BooleanIndex
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.PluginIndexes.UUIDIndex.UUIDIndex import UUIDIndex
from random import Random
from types import SimpleNamespace
from typing import Any
from zope.i18nmessageid import Message

import pytz


ABSENT = object()
BERLIN = pytz.timezone("Europe/Berlin")


@dataclass
class Case:
    """An index called x, values for the objects, and values for queries."""

    name: str
    index: Callable[[], Any]
    values: list[Any]
    keys: list[Any]
    options: tuple[str, ...] = ("range", "not")
    #: False for indexes that do not convert ``not`` if there is a ``query`` too.
    not_with_query: bool = True

    def __str__(self) -> str:
        return self.name

    def translator(self) -> IndexTranslator:
        index = self.index()
        return BUILT_IN[index.meta_type](index, "x")


class Attributes(dict[str, Any]):
    """All attributes of one object, instead of x alone."""


def raising(error: type[Exception]) -> Callable[[], Any]:
    def method() -> Any:
        raise error("no value")

    return method


NUMBERS = [
    *(0, 1, 2, 3, 10, -1, -10, 255, 2**40, -(2**70), 10**30, True, False),
    *(0.5, 1.5, 10.0, -0.25, 1e300, -1e-300, 0.1, float("inf"), float("-inf")),
    *(Decimal("0.1"), Decimal("1.50"), Decimal(10), Decimal("-0.25"), Decimal("1E+50")),
]
TEXTS = [
    *("", " ", "a", "A", "b", "aa", "ab", "Z", "a\x00", "a\x00b", "\x00", "\x01", "\x02x"),
    *("\x03", "\x03a", "\t", "ä", "Ä", "ß", "z", "€", "\ud7ff", "\ud800", "\udfff"),
    *("\ue000", "\uffff", "😀", "日本", "published", "private", Message("news", "plone")),
    *("%", "_", "a%", "a\\", "'", '"', "{", "10", "9", "x" * 899, "x" * 900),
]
LONG_TEXTS = ["long" * 2300, "long" * 2300 + "er", "ö" * 44_000]
INSTANTS = [
    datetime(2020, 1, 1, tzinfo=UTC),
    datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    datetime(2020, 1, 1, 2, 0, 0, 1, tzinfo=timezone(timedelta(hours=2))),
    BERLIN.localize(datetime(2020, 7, 1, 12)),
    datetime(1, 1, 1, 12, tzinfo=UTC),
    datetime(9999, 12, 31, tzinfo=UTC),
]
TUPLES = [*((), (1,), (1, 2), (2,), (1, 1.5), (10,), (-1, 5), (1, 2, 3)), *((1.0,), (1, -2), (3, 0), (0,), (2, 2))]
DAYS = [date(2020, 1, day) for day in range(1, 20)]
BYTES = [b"", b"a", b"\x00", b"\xff", b"a\x00", b"\x01", b"ab"]
MOMENTS = [
    *(DateTime("2020/02/28 23:59:59.999 UTC"), DateTime("2020/02/29 00:00:00 UTC")),
    *(DateTime("2020/02/29 00:00:30.5 UTC"), DateTime("2020/02/29 00:01:00 UTC")),
    *(DateTime("2020/03/01 01:00:00 GMT+1"), DateTime("2020/03/01 01:00:00 Europe/Berlin")),
    *(DateTime("2020/12/31 23:59:59 US/Eastern"), DateTime("1969/12/31 23:59:59.5 UTC")),
    *(DateTime("1899/05/05 05:05:05 UTC"), DateTime("2499/12/31 23:59:00 UTC"), DateTime("2020-06-01T12:00:00")),
    datetime(2020, 2, 29, 0, 0, 59, 999999),
    datetime(2020, 6, 1, 12, 30),
    datetime(2020, 1, 31, 12, 30, tzinfo=UTC),
    BERLIN.localize(datetime(2020, 10, 25, 2, 30), is_dst=True),
    BERLIN.localize(datetime(2020, 10, 25, 2, 30), is_dst=False),
    datetime(2020, 4, 30, 23, 59, 59, tzinfo=timezone(timedelta(hours=-5))),
    *("2020/02/29", "2020-02-29T00:01:30Z", "2021-01-01 12:00:00 GMT+3"),
    *(0, 1, -1, 59, 60, 61, 86400, 1_580_000_000, 1_580_000_059.999, 1.5, -0.5, True),
]
# The last minute of ZCatalog's 32 bits is in October 4008; DateRangeIndex knows no plain dates.
DATES = [
    *MOMENTS,
    datetime(4008, 9, 30, tzinfo=UTC),
    *(date(2020, 2, 29), date(2020, 4, 30), date(2020, 5, 1), date(1500, 1, 1)),
]
RULES = [
    "RRULE:FREQ=DAILY;COUNT=5",
    "RRULE:FREQ=DAILY;INTERVAL=7;COUNT=60",
    "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;UNTIL=20200601T000000",
    "RRULE:FREQ=MONTHLY;BYDAY=+1TU;COUNT=10",
    "RRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=4\nEXDATE:20200228T000000,20200327T000000",
    "RRULE:FREQ=DAILY;COUNT=3\nRDATE:20200501T000000,20200701T000000",
    *("RRULE:FREQ=DAILY;COUNT=1\nEXDATE:20200107T000000", "RRULE:FREQ=YEARLY;COUNT=3", "RRULE:FREQ=HOURLY;COUNT=48"),
    *("RRULE:FREQ=DAILY", "", None),
]
STARTS = [
    BERLIN.localize(datetime(2020, 1, 7, 20, 0)),
    BERLIN.localize(datetime(2020, 3, 28, 2, 30)),
    BERLIN.localize(datetime(2020, 10, 24, 2, 30)),
    pytz.utc.localize(datetime(2020, 2, 1, 9, 15, 59)),
    pytz.timezone("America/New_York").localize(datetime(2019, 12, 31, 23, 45)),
    DateTime("2020/03/27 18:00:00 Europe/Vienna"),
    DateTime("2020/03/27 18:00:00 GMT+1"),
    datetime(2020, 5, 5, 5, 5),
    date(2020, 2, 29),
]
POOLS = {
    "numbers": NUMBERS,
    "texts": TEXTS,
    "long texts": [*TEXTS[:5], *LONG_TEXTS],
    "instants": INSTANTS,
    "days": DAYS,
    "bytes": BYTES,
    "tuples": TUPLES,
    "lists": [list(value) for value in TUPLES if value],
}
KEYWORD_OPTIONS = ("range", "not", "operator")


def pick(random: Random, pool: list[Any], most: int = 3) -> list[Any]:
    return [random.choice(pool) for _ in range(random.randint(1, most))]


def field_values(pool: list[Any]) -> list[Any]:
    """Values for an index of one value per object."""
    return [*(*pool, *pool[:20], lambda: pool[0]), *(None, ABSENT, raising(AttributeError), raising(TypeError))]


def keyword_values(pool: list[Any]) -> list[Any]:
    """Values for an index of several values per object."""
    random = Random(7)
    lists = [tuple(pick(random, pool, 5)) for _ in range(40)]
    scalars = [value for value in pool if isinstance(value, str | int)]
    return [
        *(*lists, list(lists[0]), set(lists[1]), lambda: lists[2], *scalars[:5]),
        *((), [], None, ABSENT, raising(AttributeError), raising(TypeError), 0, ""),
    ]


def pairs(pool: list[Any]) -> list[Any]:
    """Objects for an index of the attributes y and x."""
    random = Random(3)
    choices = [*pool, None, None, ABSENT, ABSENT, raising(AttributeError)]
    both = [(random.choice(choices), random.choice(choices)) for _ in range(60)]
    return [
        Attributes({name: value for name, value in zip("yx", pair, strict=True) if value is not ABSENT})
        for pair in both
    ]


def ranges() -> list[Any]:
    random = Random(5)
    ends = [*MOMENTS, None, None, None, DateTime("2600/01/01"), DateTime("1000/01/01 GMT+12") - 1]
    both = [(random.choice(ends), random.choice(ends)) for _ in range(60)]
    dates = [Attributes(since=since, until=until) for since, until in both]
    minutes = [Attributes(since=5, until=10), Attributes(since=lambda: 7), Attributes(until=20)]
    return [*dates, *minutes, Attributes()]


def events() -> list[Any]:
    random = Random(11)
    untils = [None, None, BERLIN.localize(datetime(2020, 5, 1))]
    return [
        *(Attributes(x=start, recurrence=rule, until=random.choice(untils)) for start in STARTS for rule in RULES),
        *(Attributes(), Attributes(recurrence=RULES[0])),
    ]


def of_both(index_class: Any) -> Any:
    return lambda: index_class("x", extra={"indexed_attrs": "y, x"})


def date_index(**settings: Any) -> Any:
    index = DateIndex("x")
    index.__dict__.update(settings)
    return index


def field_case(name: str) -> Case:
    return Case(f"field {name}", lambda: FieldIndex("x"), field_values(POOLS[name]), POOLS[name])


def keyword_case(name: str) -> Case:
    pool = POOLS[name]
    return Case(f"keyword {name}", lambda: KeywordIndex("x"), keyword_values(pool), pool, KEYWORD_OPTIONS)


def date_case(name: str, **settings: Any) -> Case:
    return Case(name, lambda: date_index(**settings), field_values([*DATES, ""]), DATES, not_with_query=False)


def date_range_case(name: str, **settings: Any) -> Case:
    return Case(name, lambda: DateRangeIndex("x", "since", "until", **settings), ranges(), [*MOMENTS, None, 7], ())


BOOLEANS = [True, False, 0, 1, "", "False", None, (), 5, object()]
UUIDS = [f"{number:032x}" for number in range(90)]
RECURRENCE = SimpleNamespace(recurdef="recurrence", until="until")
OCCURRENCES = [
    *(BERLIN.localize(datetime(2020, 1, 7, 20) + timedelta(days=day)) for day in range(0, 400, 9)),
    *(datetime(2020, 3, day, 1, 30, tzinfo=UTC) for day in range(1, 31)),
]
LIMITS = {"floor_value": -1000, "ceiling_value": int(DateTime("2020/03/01").millis() / 60000), "precision_value": 5}
CASES = [
    *(field_case(name) for name in POOLS),
    *(keyword_case(name) for name in ("numbers", "texts", "long texts", "tuples", "instants")),
    Case("field of two attributes", of_both(FieldIndex), pairs(TEXTS), TEXTS),
    Case("field of two numbers", of_both(FieldIndex), pairs(NUMBERS), NUMBERS),
    Case("keyword of two attributes", of_both(KeywordIndex), pairs(TEXTS), TEXTS, KEYWORD_OPTIONS),
    Case("boolean", lambda: BooleanIndex("x"), field_values([True, False, 0, 1, "", "x", 2.5]), BOOLEANS, ()),
    Case("boolean of two attributes", of_both(BooleanIndex), pairs([True, False]), [True, False], ()),
    Case("uuid", lambda: UUIDIndex("x"), [*UUIDS[:60], None, ABSENT], UUIDS[::7]),
    date_case("date"),
    date_case("date as UTC", index_naive_time_as_local=False),
    date_case("date by the hour", precision=60),
    date_case("date by seven minutes", precision=7),
    date_range_case("date range"),
    date_range_case("date range with limits", **LIMITS),
    Case(
        "recurring",
        lambda: DateRecurringIndex("x", extra=RECURRENCE),
        events(),
        [*STARTS, *OCCURRENCES, None],
        not_with_query=False,
    ),
]
