"""Number of files on the way from the tool to the brains of a page of results."""

from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from tests.integration.pages import make_pages
from typing import Any

import plone.pgcatalog
import pytest
import sys


CONTENT = make_pages
SOURCE = Path(plone.pgcatalog.__file__).parent
#: The steps of a search: (module, function), each of which is called on the way.
STEPS = {
    ("core/searcher.py", "search"),
    ("query/bind.py", "condition"),
    ("query/statements.py", "page"),
    ("database/prepared.py", "_exchange"),
    ("results/rows.py", "value"),
}
#: Limits of the files on these ways, and of all files whose code runs.
MOST_ON_THE_WAY, MOST_THAT_RUN = 14, 40


def name_of(frame: Any) -> str | None:
    """Return the path of the *frame*'s module in the package, None for other code."""
    name = frame.f_code.co_filename
    return name[len(f"{SOURCE}/") :] if name.startswith(f"{SOURCE}/") else None


def files_of(action: Callable[[], Any]) -> tuple[set[str], set[str]]:
    """Return the package's files on the ways to STEPS while *action* runs, and all files whose functions run."""
    ways: set[str] = set()
    run: set[str] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        name = name_of(frame) if event == "call" else None
        if name is None:
            return
        run.add(name)
        if (name, frame.f_code.co_name) in STEPS:
            while frame is not None:
                name = name_of(frame)
                ways.update([] if name is None else [name])
                frame = frame.f_back

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return ways, run


@pytest.mark.skipif(sys.getprofile() is not None, reason="somebody else profiles")
def test_page_of_results_runs_code_of_few_files(filled: Any) -> None:
    def page() -> None:
        result_cache().clear(HITS)
        found = filled.portal_catalog.searchResults(portal_type="Document", sort_on="getId", b_size=20)
        assert len([(brain.getPath(), brain.Title) for brain in found]) == 20

    page()
    result_cache().clear()
    ways, run = files_of(page)
    assert {name for name, _ in STEPS} <= ways
    assert len(ways) <= MOST_ON_THE_WAY, " ".join(sorted(ways))
    assert len(run) <= MOST_THAT_RUN, " ".join(sorted(run))
