"""Facets are grouped in one pass over the rows; snippets are of the text without parts that are no prose."""

from plone.pgcatalog.discovery.facet_groups import FacetQuery
from plone.pgcatalog.discovery.facets import FacetStatement
from plone.pgcatalog.discovery.snippets import _text
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.query.compiler import CompiledQueries
from tests.unit.compiling import TRANSLATORS
from types import SimpleNamespace
from typing import Any

import pytest
import re


CONTEXT = SearchContext(TRANSLATORS)
YEARS = {"created": {"before": (None, "2026/01/01"), "since": ("2026/01/01", None)}}


def grouping_sets(*names: str, **options: Any) -> list[str]:
    query = FacetQuery({"Creator": "mara"}, (), names, **options)
    statement = FacetStatement(CONTEXT, query, CompiledQueries(TRANSLATORS, {})).statement("rows", ())
    [sets] = re.findall(r"GROUPING SETS \((.*?\))\)", statement.sql)
    return re.findall(r"\((.*?)\)", sets.replace('"', ""))


@pytest.mark.parametrize(
    ("names", "options", "sets"),
    [
        (["portal_type"], {}, ["portal_type", ""]),
        (["Subject"], {}, ["subject", ""]),
        (["portal_type", "Subject"], {}, ["portal_type", "subject", ""]),
        (["Creator", "portal_type"], {"ranges": YEARS}, ["creator", "portal_type", "step0", ""]),
        (["portal_type"], {"children": {"path": "/site"}}, ["portal_type", "child0", ""]),
    ],
)
def test_each_facet_is_a_grouping_set(names: list[str], options: dict[str, Any], sets: list[str]) -> None:
    assert grouping_sets(*names, **options) == sets


# -- the source text of snippets


PAGE = {"getId": "a-page", "Title": "A  title", "Description": "What it says", "Subject": ("Red", "Dark blue")}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a-page A title What it says The body Red Dark blue", "What it says The body"),
        ("a-page A title What it says Red Dark blue", "What it says"),
        ("a-page A title What it says Red Dark blue Text of a file", "What it says Text of a file"),
        ("a-page A title What it says The body is Red Dark bluebells", "What it says The body is Red Dark bluebells"),
        ("a-page A title Red Dark blue", ""),
        ("Something else of an add-on", "Something else of an add-on"),
        (None, "What it says"),
    ],
)
def test_text_has_description_and_body_only(source: str | None, text: str) -> None:
    assert _text(SimpleNamespace(**PAGE), source) == text


@pytest.mark.parametrize("columns", [{}, {"Subject": None}, {"Subject": (None, 7)}, {"getId": 7, "Title": None}])
def test_text_of_a_row_without_columns_is_whole(columns: dict[str, Any]) -> None:
    assert _text(SimpleNamespace(**columns), "a text Red") == "a text Red"


def test_link_has_no_address() -> None:
    link = SimpleNamespace(**PAGE, getRemoteUrl="https://example.org/x")
    assert _text(link, "a-page A title What it says Red Dark blue ${portal_url}/x") == "What it says"
