"""The checker of language finds words in sentences, and none in code."""

from pathlib import Path
from scripts.language import findings

import pytest


FOUND = {
    'def f():\n    """Return what the index holds."""\n': "Return what",
    "#: None for nothing\nx = 1\n": "None for nothing",
    '"""A head.\n\nA body.  What follows is a rule.\n"""\n': ".  What",
    "x = 1  # nobody reads it\n": "nobody",
    'class A:\n    """Rows that are kept."""\n': "kept",
}
PLAIN = [
    'def f():\n    """Return the rows of the index; ``what`` names them, ``kept`` or not."""\n',
    'x = "nobody is told"\n',
    '"""What does this process do?  It waits."""\n',
    "# fmt: off\nx = 1\n",
]


def words_in(source: str, folder: Path) -> list[str]:
    path = folder / "module.py"
    path.write_text(source, "utf-8")
    return [words for _, words, _ in findings(path)]


@pytest.mark.parametrize("source", FOUND)
def test_words_of_the_list_are_found_in_docstrings_and_comments(source: str, tmp_path: Path) -> None:
    assert words_in(source, tmp_path) == [FOUND[source]]


@pytest.mark.parametrize("source", PLAIN)
def test_code_strings_and_questions_are_no_findings(source: str, tmp_path: Path) -> None:
    assert words_in(source, tmp_path) == []


def test_finding_has_the_line_of_the_words(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Page\n\n```\nnobody\n```\nRows are\nkept.\n", "utf-8")
    assert [line for line, _, _ in findings(path)] == [7]
