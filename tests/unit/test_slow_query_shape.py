"""The shape of a query tells queries apart by what they ask, never by values."""

from DateTime import DateTime
from plone.pgcatalog.observe.record import keep
from plone.pgcatalog.observe.record import MAX_BYTES
from plone.pgcatalog.observe.record import recall
from plone.pgcatalog.observe.record import shape_of
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import In
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.query.objects import Path
from plone.pgcatalog.query.objects import Range
from plone.pgcatalog.query.objects import Text
from typing import Any

import json
import pytest


OPTIONS = ("query", "range", "not", "operator")
INDEXES: dict[str, tuple[str, ...]] = {
    "Creator": OPTIONS,
    "Subject": OPTIONS,
    "modified": OPTIONS,
    "allowedRolesAndUsers": OPTIONS,
    "path": ("query", "depth", "level"),
    "SearchableText": ("query",),
}


def shape(query: dict[str, Any], sort: Any = (), limited: bool = False) -> str:
    return shape_of(query, INDEXES, sort, limited)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"Creator": "jane"}, "Creator ="),
        ({"Creator": ["jane"]}, "Creator ="),
        ({"Creator": ["jane", "joe"]}, "Creator in"),
        ({"Creator": []}, "Creator nothing"),
        ({"Creator": {"not": "jane"}}, "Creator not"),
        ({"Subject": {"query": ["a", "b"], "operator": "and"}}, "Subject in operator:and"),
        ({"modified": {"query": DateTime(), "range": "min"}}, "modified = range:min"),
        ({"modified": DateTime(), "modified_range": "max"}, "modified = range:max"),
        ({"path": {"query": "/plone", "depth": 1}}, "path = depth"),
        ({"path": "/plone", "Creator": "x"}, "Creator =; path ="),
        ({"unknown": "x", "Creator": "x"}, "Creator ="),
        ({"Creator": {"query": "x", "invented by a visitor": 1}}, "Creator ="),
        ({"modified": {"query": 1, "range": "invented"}}, "modified = range:"),
        ({"where": Or(Eq("Creator", 1), Not(In("Subject", [2])))}, "where Or(Eq Creator, Not(In Subject))"),
        ({"where": "of a request"}, ""),
        ({}, ""),
    ],
)
def test_shape(query: dict[str, Any], expected: str) -> None:
    assert shape(query) == expected


def test_sort_and_limit_are_part_of_the_shape() -> None:
    sort = [("modified", True), ("Creator", False)]
    assert shape({"Creator": "x"}, sort, True) == "Creator =; sort modified desc Creator; limit"


def test_a_query_comes_back_as_it_was() -> None:
    query = {
        "Creator": "jane",
        "Subject": {"query": ("a", b"b"), "operator": "and"},
        "modified": {"query": [DateTime("2026/01/01 UTC"), DateTime("2026/02/01 UTC")], "range": "min:max"},
        "path_depth": 1,
        "path": "/plone",
        "b_size": 10,
        "where": And(
            Eq("Creator", "j"), Range("modified", max=3), Text("x"), Path(["/a", "/b"], depth=2), {"Subject": ["a"]}
        ),
        "unknown": object(),
    }
    text, left_out = keep(query, INDEXES, [("modified", True)], "5")
    del query["unknown"]
    assert recall(json.loads(text)) == (query, [("modified", True)], 5)
    assert left_out == []


def test_who_asked_is_not_kept() -> None:
    roles = ["Anonymous", "Member", "user:jane", "user:Staff"]
    text, _ = keep({"allowedRolesAndUsers": roles}, INDEXES, (), None)
    assert recall(json.loads(text))[0] == {"allowedRolesAndUsers": ["Anonymous", "Member"]}
    text, _ = keep({"allowedRolesAndUsers": {"query": roles}}, INDEXES, (), None)
    assert recall(json.loads(text))[0] == {"allowedRolesAndUsers": {"query": ["Anonymous", "Member"]}}
    text, left_out = keep({"where": In("allowedRolesAndUsers", roles)}, INDEXES, (), None)
    assert "jane" not in text
    assert left_out == ["where"]


def test_masked_values_are_not_kept() -> None:
    query = {"SearchableText": "my illness", "Creator": "jane", "where": Text("my illness")}
    text, left_out = keep(query, INDEXES, (), None, {"SearchableText", "Title"})
    assert "illness" not in text
    assert "jane" in text
    assert left_out == ["SearchableText", "where"]
    text, left_out = keep(query, INDEXES, (), None, {"*"})
    assert json.loads(text) == {"query": {}, "where": None, "sort": [], "limit": None}
    assert left_out == ["Creator", "SearchableText", "where"]


@pytest.mark.parametrize("value", [object(), ["x" * MAX_BYTES], {"query": lambda: 1}, "x" * 10**6])
def test_values_that_cannot_be_kept_are_named(value: Any) -> None:
    text, left_out = keep({"Creator": value, "path": "/x"}, INDEXES, (), object())
    assert json.loads(text)["query"] == {"path": "/x"}
    assert left_out == ["Creator"]


@pytest.mark.parametrize("value", ["a\0b", "\ud800", float("nan"), 10**400, "\N{GRINNING FACE}", b"\xff", None, [None]])
def test_odd_values_come_back(value: Any) -> None:
    text, left_out = keep({"Creator": value}, INDEXES, (), None)
    assert left_out == []
    assert repr(recall(json.loads(text))[0]) == repr({"Creator": value})
