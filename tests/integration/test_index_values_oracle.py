"""The index translators have the answers of ZCatalog's indexes over the same objects.

Each case puts the same objects into a real ``Products.ZCatalog.Catalog.Catalog`` and into a table of the translator's
columns and SQL indexes, then sends the same seeded random queries to both.  Deliberate deviations are excluded
(``is_deviation``); the unit tests of the index show them.
"""

from collections.abc import Iterator
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from Products.PluginIndexes.BooleanIndex.BooleanIndex import BooleanIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.ZCatalog.Catalog import Catalog
from random import Random
from tests.integration import index_cases as cases
from tests.integration.translated import Table
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest


Query = dict[str, Any]
QUERIES = 300
#: Errors that a query with a wrong option or value may raise.
ERRORS = (ValueError, TypeError, IndexError, AttributeError)
WITH_INDEXES = [case for case in cases.CASES if case.translator().sql_indexes()]
WITH_NOT = [case for case in cases.CASES if "not" in case.options]
MIN, MAX = {"range": "min"}, {"range": "max"}
RANGES = ("min", "max", "min:max", "max:min", "minmax", "foo", "")


def thing(value: Any) -> Any:
    """Return an object to catalogue."""
    absent = {} if value is cases.ABSENT else {"x": value}
    return SimpleNamespace(**value if isinstance(value, cases.Attributes) else absent)


class Twins(Table):
    """The same objects in a ZCatalog and in a table."""

    def __init__(self, case: cases.Case, connection: psycopg.Connection[Any]) -> None:
        super().__init__(connection, case.translator())
        self.case = case
        catalog = Catalog()
        catalog.addIndex("x", case.index())
        self.index = catalog.getIndex("x")
        self.reports: set[str] = set()
        for number, value in enumerate(case.values):
            obj = thing(value)
            catalog.catalogObject(obj, f"/{number}")
            self.reports.update(self.add(catalog.uids[f"/{number}"], obj))

    def ask_zcatalog(self, query: Query) -> Any:
        """Return the sorted rids, None if the query has no criterion of the index, or the error raised."""
        try:
            answer = self.index._apply_index(query)
        except ERRORS as error:
            return type(error)
        return answer and sorted(answer[0])

    def ask_postgres(self, query: Query) -> Any:
        try:
            condition = self.translator.where(query)
        except ERRORS as error:
            return type(error)
        return condition and self.rids(condition)


@pytest.fixture(scope="module")
def things(postgres: EmbeddedPostgres) -> str:
    """DSN of the database for this module's tables."""
    return postgres.createdb("index_values")


@pytest.fixture(scope="module", params=cases.CASES, ids=str)
def twins(request: pytest.FixtureRequest, things: str) -> Iterator[Twins]:
    """The twins of a case, for all its tests: these only read."""
    with psycopg.connect(things, autocommit=True) as connection:
        # Far from UTC: nothing may depend on the session's time zone.
        connection.execute("SET TIME ZONE 'Pacific/Auckland'")
        yield Twins(request.param, connection)
        connection.execute("DROP TABLE things")


def random_query(case: cases.Case, random: Random) -> Query:
    """Return a query in the new style or in the old one."""
    keys = random_keys(case, random)
    options = random_options(case, random)
    if "not" in options and (random.random() < 0.4 or not case.not_with_query):
        return {"x": options}
    if random.random() < 0.1:
        return {"x": keys, **{f"x_{name}": value for name, value in options.items()}}
    return {"x": {"query": keys, **options}, "other": 1}


def random_keys(case: cases.Case, random: Random) -> Any:
    keys = cases.pick(random, case.keys)
    shape = random.random()
    if shape < 0.4 and not isinstance(keys[0], tuple | list):
        return keys[0]
    if shape < 0.45:
        return []
    if shape < 0.5:
        return [*keys, None]
    return tuple(keys) if shape < 0.6 else keys


def random_options(case: cases.Case, random: Random) -> Query:
    options: Query = {}
    if "range" in case.options and random.random() < 0.5:
        options["range"] = random.choice(RANGES)
    if "not" in case.options and random.random() < 0.3:
        excluded = cases.pick(random, case.keys)
        single = len(excluded) == 1 and not isinstance(excluded[0], tuple | list)
        options["not"] = excluded[0] if single else excluded
    if "operator" in case.options and random.random() < 0.4:
        options["operator"] = random.choice(["and", "or", "AND"])
    return options


def is_deviation(query: Query) -> bool:
    """Return whether *query* is answered differently on purpose."""
    options = query["x"] if isinstance(query["x"], dict) else {"query": query["x"]}
    option = {**{name: query.get(f"x_{name}") for name in ("not", "range", "operator")}, **options}
    if option["not"] is not None and not option.get("query") and not option["range"]:
        return True  # "not" alone: see test_same_answers_to_not_alone
    # In ZCatalog: the rows that have every existing key in the range.
    return bool(option["range"]) and str(option["operator"]).lower() == "and"


@pytest.mark.parametrize("queries", [QUERIES // 3, pytest.param(QUERIES, marks=pytest.mark.slow)])
def test_same_answers(twins: Twins, queries: int) -> None:
    random = Random(twins.case.name)
    asked = 0
    while asked < queries:
        query = random_query(twins.case, random)
        if is_deviation(query):
            continue
        asked += 1
        assert twins.ask_postgres(query) == twins.ask_zcatalog(query), query


@pytest.mark.parametrize("twins", WITH_NOT, ids=str, indirect=True)
def test_same_answers_to_not_alone(twins: Twins) -> None:
    """``not`` alone includes objects without a value, as long as one of the values occurs.

    Otherwise ZCatalog answers without the objects that have no value.
    """
    random = Random(twins.case.name)
    asked = 0
    while asked < QUERIES // 10:
        excluded = cases.pick(random, twins.case.keys)
        if not twins.ask_zcatalog({"x": excluded}):
            continue
        asked += 1
        query = {"x": {"not": excluded}}
        assert twins.ask_postgres(query) == twins.ask_zcatalog(query), query


def test_same_entries_values_and_order_and_only_long_values_are_reported(twins: Twins) -> None:
    report = {"a long value is sorted by its beginning only"}
    assert twins.reports == (report if "long" in twins.case.name else set())
    columns = ", ".join(column.quoted for column in twins.translator.columns())
    for rid, *values in twins.execute(f"SELECT rid, {columns} FROM things"):
        expected = twins.index.getEntryForObject(rid)
        if all(value is None for value in values):
            assert expected is None
            continue
        if isinstance(twins.index, KeywordIndex):
            expected.sort()  # ZCatalog stores them in the order of a set
        assert same(twins.translator.entry(tuple(values)), expected)
    check_unique_values(twins)
    check_order(twins)


def same(entry: Any, expected: Any) -> bool:
    """Return whether the entries are equal; a long one of ours is cut."""
    if isinstance(entry, list):
        return len(entry) == len(expected) and all(map(same, entry, expected))
    if isinstance(entry, str) and len(entry.encode(errors="replace")) > 800:
        return expected.startswith(entry)
    return bool(entry == expected)


def check_unique_values(twins: Twins) -> None:
    expected = list(twins.index.uniqueValues(withLengths=True))
    expression = twins.translator.key_expression()
    if expression is None:
        assert expected == []
        return
    rows = twins.execute(
        f"SELECT key, count(*) FROM (SELECT {expression} AS key FROM things) keys"
        " WHERE key IS NOT NULL GROUP BY key ORDER BY key"
    )
    if isinstance(twins.index, BooleanIndex):
        expected.sort()  # ZCatalog begins with the rarer one
    assert len(rows) == len(expected)
    for (key, count), (expected_key, expected_count) in zip(rows, expected, strict=True):
        assert same(twins.translator.key(key), expected_key)
        assert count == expected_count


def check_order(twins: Twins) -> None:
    """Sorted by SQL, the objects are those that ZCatalog sorts, in its order."""
    expressions = twins.translator.order_by()
    assert expressions
    rows = twins.execute(f"SELECT rid FROM things WHERE {expressions[0]} IS NOT NULL ORDER BY {', '.join(expressions)}")
    keys = twins.index.documentToKeyMap()
    assert sorted(keys) == sorted(rid for (rid,) in rows)
    if isinstance(twins.index, DateRangeIndex):
        return  # ZCatalog fails to compare None
    order = [keys[rid] for (rid,) in rows]
    if isinstance(twins.index, KeywordIndex):
        order = [sorted(keywords) for keywords in order]
    if "long" not in twins.case.name:
        assert order == sorted(order)


@pytest.mark.parametrize("twins", WITH_INDEXES, ids=str, indirect=True)
def test_each_sql_index_answers_a_query(twins: Twins) -> None:
    key = [next(key for key in twins.case.keys if key)]
    conditions = [twins.translator.where({"x": {"query": key, **options}}) for options in ({}, MIN, MAX)]
    with twins.connection.transaction():
        twins.connection.execute("SET LOCAL enable_seqscan = off")
        plans = "".join(twins.plan(condition) for condition in conditions)
    for index in twins.translator.sql_indexes():
        assert f"things_{index.name}" in plans
