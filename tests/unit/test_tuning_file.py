"""The text file of a site's tuning."""

from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.fulltext.tuning import LineError
from plone.pgcatalog.fulltext.tuning import READERS
from plone.pgcatalog.fulltext.tuning_file import read_file
from plone.pgcatalog.fulltext.tuning_file import written

import pytest


LINES = st.lists(
    st.one_of(
        st.text(alphabet="ab#[]=, \té", max_size=8), st.sampled_from(["[pins]", "# a, b", "[a], [b]", "car, auto"])
    )
)


@given(st.dictionaries(st.sampled_from(list(READERS)), LINES))
def test_written_tuning_is_read_unchanged(lines: dict[str, list[str]]) -> None:
    settings = {name: "\n".join(filter(None, map(str.strip, lines.get(name, [])))) for name in READERS}
    assert read_file(written(settings)) == settings


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("\ufeff[pins]\r\n", {"pins": ""}),
        ("# ours\n\n[synonyms]\n car, auto \n# no\n #c, csharp\n[pins]\na = /b", {"synonyms": "car, auto\n#c, csharp", "pins": "a = /b"}),
        ("[pins]\na = /b\n[pins]\nc = /d", {"pins": "a = /b\nc = /d"}),
    ],
)  # fmt: skip
def test_sections_are_read(text: str, settings: dict[str, str]) -> None:
    assert read_file(text) == settings


@pytest.mark.parametrize(("text", "line"), [("a = /b", "Line 1"), ("[pins]\na = /b\n[pin]\n", "Line 3")])
def test_unreadable_file_raises_with_line(text: str, line: str) -> None:
    with pytest.raises(LineError, match=line):
        read_file(text)
