"""The page *What we replace* lists everything that the code replaces, each with a reason."""

from itertools import chain
from scripts.replaced import index_rows
from scripts.replaced import inside_rows
from scripts.replaced import PAGE
from scripts.replaced import patch_rows
from scripts.replaced import tool_rows
from scripts.replaced import with_page
from scripts.replaced import zcml_rows


def test_page_is_generated_from_the_code() -> None:
    """After a change: ``.venv/bin/python scripts/replaced.py``."""
    page = PAGE.read_text("utf-8")
    assert with_page(page) == page


def test_everything_has_a_reason() -> None:
    """Its docstring, or a line in ``WHY`` of the script."""
    rows = list(chain(tool_rows(), inside_rows(), index_rows(), zcml_rows(), patch_rows()))
    assert [row for row in rows if not row[-1]] == []


def test_nothing_known_to_be_replaced_is_missing() -> None:
    assert {"searchResults", "manage_catalogClear", "Indexes"} <= {row[0] for row in tool_rows()}
    assert {"uids", "catalogObject", "search"} <= {row[0] for row in inside_rows()}
    assert {"search", "ajax-search", "@pgsearch", "toolset", "drop_catalog"} <= {row[1] for row in zcml_rows()}
    assert {"PGJsonbStorage.pack", "TransformTool._findPath", "instance.new_oid"} <= {row[0] for row in patch_rows()}
