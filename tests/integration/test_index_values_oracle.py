"""The index translators answer what ZCatalog's indexes answer, over the same objects.

Each case puts the same objects into a real ``Products.ZCatalog.Catalog.Catalog`` and into a table made of
the translator's columns and SQL indexes, then asks both the same seeded random queries.  What is
different on purpose is not asked here, but tested under ``DEVIATIONS`` in the unit tests of the index.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from DateTime.DateTime import DateTime
from decimal import Decimal
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.boolean import BooleanIndexTranslator
from plone.pgcatalog.indexes.date import DateIndexTranslator
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from plone.pgcatalog.indexes.field import FieldIndexTranslator
from plone.pgcatalog.indexes.keyword import KeywordIndexTranslator
from plone.pgcatalog.indexes.recurring import DateRecurringIndexTranslator
from plone.pgcatalog.indexes.uuid import UUIDIndexTranslator
from Products.DateRecurringIndex.index import DateRecurringIndex
from Products.PluginIndexes.BooleanIndex.BooleanIndex import BooleanIndex
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.PluginIndexes.UUIDIndex.UUIDIndex import UUIDIndex
from Products.ZCatalog.Catalog import Catalog
from random import Random
from types import SimpleNamespace
from typing import Any
from zope.i18nmessageid import Message

import psycopg
import pytest
import pytz


Query = dict[str, Any]
BERLIN = pytz.timezone("Europe/Berlin")
ABSENT = object()
QUERIES = 300


@dataclass
class Case:
    """An index, what the objects have for it, and what a query may ask for."""

    name: str
    index: Callable[[], Any]
    translator: type[IndexTranslator]
    values: list[Any]
    keys: list[Any]
    options: tuple[str, ...] = ("range", "not")
    #: How to compare entries: ZCatalog keeps keywords in the arbitrary order of a set.
    entry: Callable[[Any], Any] = field(default=lambda entry: entry)
    #: ``not`` together with ``query``: some indexes forget to convert it then.
    not_with_query: bool = True

    def __str__(self) -> str:
        return self.name


class Thing:
    """An object with the attribute ``x``, or with the attributes of a dict."""

    def __init__(self, value: Any) -> None:
        if isinstance(value, Attributes):
            self.__dict__.update(value)
        elif value is not ABSENT:
            self.x = value


class Attributes(dict[str, Any]):
    """Several attributes of one object."""


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
TUPLES = [
    *((), (1,), (1, 2), (2,), (1, 1.5), (10,), (-1, 5), (1, 2, 3)),
    *((1.0,), (1, -2), (3, 0), (0,), (2, 2)),
]
DATES = [
    DateTime("2020/02/28 23:59:59.999 UTC"),
    DateTime("2020/02/29 00:00:00 UTC"),
    DateTime("2020/02/29 00:00:30.5 UTC"),
    DateTime("2020/02/29 00:01:00 UTC"),
    DateTime("2020/03/01 01:00:00 GMT+1"),
    DateTime("2020/03/01 01:00:00 Europe/Berlin"),
    DateTime("2020/12/31 23:59:59 US/Eastern"),
    DateTime("1969/12/31 23:59:59.5 UTC"),
    DateTime("1899/05/05 05:05:05 UTC"),
    DateTime("2499/12/31 23:59:00 UTC"),
    DateTime("2020-06-01T12:00:00"),
    datetime(2020, 2, 29, 0, 0, 59, 999999),
    datetime(2020, 6, 1, 12, 30),
    datetime(2020, 1, 31, 12, 30, tzinfo=UTC),
    BERLIN.localize(datetime(2020, 10, 25, 2, 30), is_dst=True),
    BERLIN.localize(datetime(2020, 10, 25, 2, 30), is_dst=False),
    datetime(2020, 4, 30, 23, 59, 59, tzinfo=timezone(timedelta(hours=-5))),
    datetime(4009, 1, 1, tzinfo=UTC),
    date(2020, 2, 29),
    date(2020, 4, 30),
    date(2020, 5, 1),
    date(1500, 1, 1),
    *("2020/02/29", "2020-02-29T00:01:30Z", "2021-01-01 12:00:00 GMT+3"),
    *(0, 1, -1, 59, 60, 61, 86400, 1_580_000_000, 1_580_000_059.999, 1.5, -0.5, True),
]
RULES = [
    "RRULE:FREQ=DAILY;COUNT=5",
    "RRULE:FREQ=DAILY;INTERVAL=7;COUNT=60",
    "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;UNTIL=20200601T000000",
    "RRULE:FREQ=MONTHLY;BYDAY=+1TU;COUNT=10",
    "RRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=4\nEXDATE:20200228T000000,20200327T000000",
    "RRULE:FREQ=DAILY;COUNT=3\nRDATE:20200501T000000,20200701T000000",
    "RRULE:FREQ=YEARLY;COUNT=3",
    "RRULE:FREQ=HOURLY;COUNT=48",
    "RRULE:FREQ=DAILY",
    "",
    None,
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


def pick(random: Random, pool: list[Any], most: int = 3) -> list[Any]:
    return [random.choice(pool) for _ in range(random.randint(1, most))]


def field_values(pool: list[Any]) -> list[Any]:
    special = [None, ABSENT, raising(AttributeError), raising(TypeError), []]
    return [*pool, *special, *pool[:20], lambda: pool[0]]


def keyword_values(pool: list[Any]) -> list[Any]:
    random = Random(7)
    lists = [tuple(pick(random, pool, 5)) for _ in range(40)]
    return [*lists, list(lists[0]), set(lists[1]), lambda: lists[2], pool[0], pool[3]] + [
        *((), [], None, ABSENT, raising(AttributeError), raising(TypeError), 0, "")
    ]


def several(pool: list[Any]) -> list[Any]:
    """Objects for an index of the attributes y and x."""
    random = Random(3)
    choices = [*pool, None, ABSENT, raising(AttributeError)]
    pairs = [(random.choice(choices), random.choice(choices)) for _ in range(60)]
    return [
        Attributes({k: v for k, v in zip("yx", pair, strict=True) if v is not ABSENT})
        for pair in pairs
    ]


def date_index(**settings: Any) -> Callable[[], Any]:
    def make() -> Any:
        index = DateIndex("x")
        index.__dict__.update(settings)
        return index

    return make


def range_index(**settings: Any) -> Callable[[], Any]:
    return lambda: DateRangeIndex("x", "since", "until", **settings)


def ranges() -> list[Attributes]:
    random = Random(5)
    ends = [*DATES, None, None, None, DateTime("2600/01/01"), DateTime("1000/01/01 GMT+12") - 1]
    pairs = [(random.choice(ends), random.choice(ends)) for _ in range(60)]
    things = [Attributes(since=since, until=until) for since, until in pairs]
    minutes = [Attributes(since=5, until=10), Attributes(since=lambda: 7)]
    return [*things, *minutes, Attributes(until=20), Attributes()]


def events() -> list[Attributes]:
    random = Random(11)
    untils = [None, None, BERLIN.localize(datetime(2020, 5, 1))]
    things = [
        Attributes(x=start, recurrence=rule, until=random.choice(untils))
        for start in STARTS
        for rule in RULES
        # ZCatalog expands naive and date-only starts in UTC.
    ]
    return [*things, Attributes(), Attributes(recurrence=RULES[0])]


def recurring_index() -> Any:
    return DateRecurringIndex("x", extra=SimpleNamespace(recurdef="recurrence", until="until"))


def attributes_index(cls: Any) -> Callable[[], Any]:
    return lambda: cls("x", extra={"indexed_attrs": "y, x"})


FIELD_POOLS = {
    "numbers": NUMBERS,
    "texts": TEXTS,
    "long texts": [*TEXTS[:5], *LONG_TEXTS],
    "instants": INSTANTS,
    "dates": [date(2020, 1, day) for day in range(1, 20)],
    "bytes": [b"", b"a", b"\x00", b"\xff", b"a\x00", b"\x01", b"ab"],
    "tuples": TUPLES,
    "lists": [list(value) for value in TUPLES if value],
}
CASES = [
    *(
        Case(f"field {name}", lambda: FieldIndex("x"), FieldIndexTranslator, field_values(pool), pool)
        for name, pool in FIELD_POOLS.items()
    ),
    *(
        Case(
            f"keyword {name}",
            lambda: KeywordIndex("x"),
            KeywordIndexTranslator,
            keyword_values(FIELD_POOLS[name]),
            FIELD_POOLS[name],
            ("range", "not", "operator"),
            entry=lambda entry: entry and sorted(entry),
        )
        for name in ("numbers", "texts", "tuples", "instants")
    ),
    Case("field attributes", attributes_index(FieldIndex), FieldIndexTranslator, several(TEXTS), TEXTS),
    Case(
        "keyword attributes",
        attributes_index(KeywordIndex),
        KeywordIndexTranslator,
        several(TEXTS),
        TEXTS,
        ("range", "not", "operator"),
    ),
    Case(
        "boolean",
        lambda: BooleanIndex("x"),
        BooleanIndexTranslator,
        field_values([True, False, 0, 1, "", "x", 2.5]),
        [True, False, 0, 1, "", "False", None, (), 5, object()],
        (),
    ),
    Case(
        "boolean attributes",
        attributes_index(BooleanIndex),
        BooleanIndexTranslator,
        several([True, False]),
        [True, False],
        (),
    ),
    Case(
        "uuid",
        lambda: UUIDIndex("x"),
        UUIDIndexTranslator,
        [*(f"{n:032x}" for n in range(60)), None, ABSENT],
        [f"{n:032x}" for n in range(0, 90, 7)],
    ),
    Case("date", date_index(), DateIndexTranslator, field_values([*DATES, ""]), DATES, not_with_query=False),
    Case(
        "date as UTC",
        date_index(index_naive_time_as_local=False),
        DateIndexTranslator,
        field_values(DATES),
        DATES,
        not_with_query=False,
    ),
    Case(
        "date by the hour",
        date_index(precision=60),
        DateIndexTranslator,
        field_values(DATES),
        DATES,
        not_with_query=False,
    ),
    Case("date range", range_index(), DateRangeIndexTranslator, ranges(), [*DATES, None, 7], ()),
    Case(
        "date range with limits",
        range_index(
            floor_value=-1000, ceiling_value=int(DateTime("2020/03/01").millis() / 60000), precision_value=5
        ),
        DateRangeIndexTranslator,
        ranges(),
        [*DATES, None, 7],
        (),
    ),
    Case(
        "recurring",
        recurring_index,
        DateRecurringIndexTranslator,
        events(),
        [
            *STARTS,
            *(BERLIN.localize(datetime(2020, 1, 7, 20) + timedelta(days=d)) for d in range(0, 400, 9)),
            *(datetime(2020, 3, d, 1, 30, tzinfo=UTC) for d in range(1, 31)),
            None,
        ],
        not_with_query=False,
    ),
]


class Twins:
    """The same objects in a ZCatalog and in a table."""

    def __init__(self, case: Case, connection: psycopg.Connection[Any]) -> None:
        self.case = case
        self.connection = connection
        self.catalog = Catalog()
        self.catalog.addIndex("x", case.index())
        self.index = self.catalog.getIndex("x")
        self.translator = case.translator(case.index(), "x")
        self.reports: list[str] = []
        self.rows = {rid: values for rid, values in self._catalogue() if values is not None}
        self._fill_table()

    def _catalogue(self) -> Iterator[tuple[int, Any]]:
        for number, value in enumerate(self.case.values):
            thing = Thing(value)
            self.catalog.catalogObject(thing, f"/{number}")
            rid = self.catalog.uids[f"/{number}"]
            yield rid, self.translator.extract(thing, self.reports.append)

    def _fill_table(self) -> None:
        columns = self.translator.columns()
        ddl = ", ".join(column.ddl for column in columns)
        self.connection.execute(f"CREATE TABLE things (rid integer PRIMARY KEY, {ddl})")
        for index in self.translator.sql_indexes():
            self.connection.execute(f'CREATE INDEX "things_{index.name}" ON things {index.definition}')
        marks = ", ".join(["%s"] * (len(columns) + 1))
        for rid in self.catalog.paths:
            values = self.rows.get(rid, (None,) * len(columns))
            self.connection.execute(f"INSERT INTO things VALUES ({marks})", (rid, *values))

    def select(self, sql: str, params: tuple[Any, ...] = ()) -> list[Any]:
        return self.connection.execute(sql, params or None).fetchall()

    def asked_zcatalog(self, query: Query) -> Any:
        try:
            answer = self.index._apply_index(query)
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            return type(error)
        return answer and sorted(answer[0])

    def asked_postgres(self, query: Query) -> Any:
        try:
            condition = self.translator.where(query)
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            return type(error)
        if condition is None:
            return None
        rows = self.select(f"SELECT rid FROM things WHERE {condition.sql} ORDER BY rid", condition.params)
        return [rid for (rid,) in rows]


@pytest.fixture(params=CASES, ids=str)
def twins(request: pytest.FixtureRequest, connection: psycopg.Connection[Any]) -> Twins:
    # A zone far from UTC: nothing may depend on the session's.
    connection.execute("SET TIME ZONE 'Pacific/Auckland'")
    return Twins(request.param, connection)


def random_query(case: Case, random: Random) -> Query:
    """Return a query in the new style or in the old one."""
    keys: Any = pick(random, case.keys)
    shape = random.random()
    if shape < 0.4:
        keys = keys[0]
    elif shape < 0.45:
        keys = []
    elif shape < 0.5:
        keys = [*keys, None]
    elif shape < 0.6:
        keys = tuple(keys)
    options = random_options(case, random)
    if random.random() < 0.1:
        return {"x": keys, **{f"x_{name}": value for name, value in options.items()}}
    if "not" in options and (random.random() < 0.4 or not case.not_with_query):
        return {"x": options}
    return {"x": {"query": keys, **options}, "other": 1}


def random_options(case: Case, random: Random) -> Mapping[str, Any]:
    options: Query = {}
    if "range" in case.options and random.random() < 0.5:
        options["range"] = random.choice(["min", "max", "min:max", "max:min", "minmax", "foo", ""])
    if "not" in case.options and random.random() < 0.3:
        options["not"] = random.choice([pick(random, case.keys), random.choice(case.keys)])
    if "operator" in case.options and random.random() < 0.4:
        options["operator"] = random.choice(["and", "or", "AND"])
    return options


def is_deviation(query: Query, answer: Any) -> bool:
    """True for what the two answer differently on purpose (see the end of the unit tests)."""
    options = query["x"] if isinstance(query["x"], dict) else {}
    lone_not = "not" in options and "query" not in options
    both = options.get("operator", query.get("x_operator", "or")).lower() == "and"
    ranged = bool(options.get("range", query.get("x_range")))
    # "not" alone, of values that do not occur: without the rows that have no value.
    # "and" with a range: rows that have every key of the range.
    return lone_not and not ranged or both and ranged or answer is NotImplemented


def test_same_answers(twins: Twins) -> None:
    random = Random(twins.case.name)
    asked = 0
    while asked < QUERIES:
        query = random_query(twins.case, random)
        expected = twins.asked_zcatalog(query)
        if is_deviation(query, expected):
            continue
        asked += 1
        assert twins.asked_postgres(query) == expected, query


def test_same_answers_without_a_value(twins: Twins) -> None:
    """``not`` alone keeps objects without a value, as long as one of the values occurs."""
    if "not" not in twins.case.options:
        pytest.skip("an index without not")
    random = Random(twins.case.name)
    asked = 0
    everything = sorted(twins.catalog.paths)
    while asked < QUERIES // 10:
        excluded = pick(random, twins.case.keys)
        found = twins.asked_zcatalog({"x": excluded})
        if not found:
            continue
        asked += 1
        expected = sorted(set(everything) - set(found))
        query = {"x": {"not": excluded}}
        assert twins.asked_zcatalog(query) == expected
        assert twins.asked_postgres(query) == expected


def test_same_entries(twins: Twins) -> None:
    columns = ", ".join(column.quoted for column in twins.translator.columns())
    for rid, *values in twins.select(f"SELECT rid, {columns} FROM things"):
        expected = twins.index.getEntryForObject(rid)
        if all(value is None for value in values):
            assert expected is None
            continue
        entry = twins.translator.entry(tuple(values))
        if isinstance(entry, str) and len(entry) > 800:
            assert expected.startswith(entry[:800])
        else:
            assert twins.case.entry(entry) == twins.case.entry(expected)


def test_same_unique_values(twins: Twins) -> None:
    expression = twins.translator.key_expression()
    expected = list(twins.index.uniqueValues(withLengths=True))
    if expression is None:
        assert expected == []
        return
    rows = twins.select(
        f"SELECT key, count(*) FROM (SELECT {expression} AS key FROM things) keys"
        " WHERE key IS NOT NULL GROUP BY key ORDER BY key"
    )
    found = [(twins.translator.key(key), count) for key, count in rows]
    if twins.case.name == "field long texts":
        assert [count for _, count in found] == [count for _, count in expected]
    elif isinstance(twins.index, BooleanIndex):
        assert found == sorted(expected)
    else:
        assert found == expected


def test_same_order(twins: Twins) -> None:
    """Sorted by SQL, the objects' sort keys of ZCatalog are in order too."""
    expressions = twins.translator.order_by()
    assert expressions
    rows = twins.select(
        f"SELECT rid FROM things WHERE {expressions[0]} IS NOT NULL ORDER BY {', '.join(expressions)}"
    )
    keys = twins.index.documentToKeyMap()
    assert sorted(keys) == sorted(rid for (rid,) in rows)
    if isinstance(twins.index, DateRangeIndex):
        return  # ZCatalog fails to compare None
    order = [twins.case.entry(keys[rid]) for (rid,) in rows]
    if twins.case.name != "field long texts":
        assert order == sorted(order)


def test_nothing_reported(twins: Twins) -> None:
    """Only long values are reported: the others are all ZCatalog's own."""
    expected = {"a long value is found as a whole, but sorted by its beginning only"}
    assert set(twins.reports) <= expected


def test_everything_is_a_condition() -> None:
    assert EVERYTHING.sql == "TRUE"
