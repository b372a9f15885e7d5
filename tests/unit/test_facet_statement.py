"""The grouping of facets, as data: one pass over the rows for all of them."""

from plone.pgcatalog.discovery.facet_groups import FacetQuery
from plone.pgcatalog.discovery.facets import FacetStatement
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.query.compiler import CompiledQueries
from tests.unit.compiling import TRANSLATORS
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
        (["portal_type", "Creator"], {}, ["portal_type, creator", ""]),
        (["portal_type", "Subject", "Creator"], {}, ["portal_type, creator", "subject", ""]),
        (["portal_type", "Creator", "created"], {}, ["portal_type, creator", "created", ""]),
        (["Creator", "portal_type"], {"ranges": YEARS}, ["creator, portal_type", "step0", ""]),
        (["portal_type", "Creator"], {"children": {"path": "/site"}}, ["portal_type, creator", "child0", ""]),
    ],
)
def test_values_one_to_a_row_are_grouped_together(names: list[str], options: dict[str, Any], sets: list[str]) -> None:
    """Their groups are few, and are summed up per facet; lists, dates and places would add as many groups as rows."""
    assert grouping_sets(*names, **options) == sets
