"""The source text of snippets: the searchable text of Plone's types without non-prose parts."""

from plone.pgcatalog.discovery.highlight import _text
from types import SimpleNamespace
from typing import Any

import pytest


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
