"""The page *What we replace* lists everything that the code replaces, each with a reason."""

from itertools import chain
from scripts import replaced


def test_page_is_generated_from_the_code_with_a_reason_for_each_row() -> None:
    """After a change: ``.venv/bin/python scripts/replaced.py``.  Reasons are docstrings, or lines in ``WHY`` of the script."""
    page = replaced.PAGE.read_text("utf-8")
    assert replaced.with_page(page) == page
    groups = [each() for each in (replaced.tool_rows, replaced.inside_rows, replaced.index_rows)]
    groups += [replaced.zcml_rows(), replaced.patch_rows()]
    assert all(groups)
    assert [row for row in chain(*groups) if not row[-1]] == []
