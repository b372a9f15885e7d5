"""The checker of language finds words in sentences, and none in code."""

from pathlib import Path
from scripts.language import findings

import pytest


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("module.py", 'def f():\n    """Return what the index holds."""\n', [(2, "Return what")]),
        (
            "module.py",
            '"""A head.\n\nA body.  What follows is a rule.\n"""\nx = 1  # kept\n',
            [(3, ".  What"), (5, "kept")],
        ),
        ("module.py", '"""Return the rows; ``what`` names them.  What does it do?"""\nx = "nobody is told"\n', []),
        ("page.md", "# Page\n\n```\nnobody\n```\nRows are\nkept.\n", [(7, "kept")]),
    ],
)
def test_words_are_found_in_docstrings_comments_and_text(
    name: str, source: str, found: list[tuple[int, str]], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(source, "utf-8")
    assert [(line, words) for line, words, _ in findings(path)] == found
