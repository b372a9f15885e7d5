"""The comparison of libraries that read files: ``benchmarks.readers``."""

from benchmarks import readers
from pathlib import Path
from tests.unit.sources import between
from tests.unit.sources import ROOT
from tests.unit.sources import text

import json
import pytest
import sys


RESULT = json.loads(text(ROOT / "benchmarks" / "results" / "readers.json"))
TEXTS = {
    "poppler": "Köln \ufb01ndet rechtslinks",
    "Tika": "KÖLN findet rechts links",
    "LibreOffice": None,
    "xberg": "finder Köln",
}


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("Stra\u00adße, STRASSE x R&D 2023_a1", {"strasse", "2023", "a1"}),
        ("K\u00f6ln Ko\u0308ln", {"k\u00f6ln"}),
        ("東京都 in 2024", {"東京", "京都", "in", "2024"}),
        ("", set()),
    ],
)
def test_words_are_distinct_and_shown(shown: str, found: set[str]) -> None:
    assert readers.words(shown) == found


def test_words_of_two_references_are_agreed() -> None:
    together, agreed = readers.reference(TEXTS)
    assert (together, agreed) == ({"köln", "findet", "rechtslinks", "rechts", "links"}, {"köln", "findet"})
    assert readers.reference(TEXTS | {"poppler": ""}) == ({"köln", "findet", "rechts", "links"},) * 2
    assert readers.of_file(TEXTS) == {"words": [5, 2], "lost": {"poppler": [2, 0], "Tika": [1, 0], "xberg": [4, 1]}}


@pytest.mark.parametrize(("shown", "passed"), [("R&D\n Köln", True), ("RD Köln", False), ("", False), (None, None)])
def test_case_passes_if_all_texts_are_shown(shown: str | None, passed: bool | None) -> None:
    assert readers.of_case(shown, ["R&D", "Köln"]) is passed


def test_reader_runs_in_a_process(tmp_path: Path) -> None:
    page, other = tmp_path / "page.html", tmp_path / "file.pdf"
    page.write_text("<script>no</script><p>R&amp;D in K&ouml;ln", "utf-8")
    other.write_bytes(b"no PDF")
    found = readers.Readers(sys.executable, "", tmp_path / "texts")
    assert found.read("Python", page, readers.HTML) == "R&D in Köln"
    assert found.read("Python", other, readers.PDF) is None
    assert found.read("pypdf", other, readers.PDF) == ""
    assert list(tmp_path.glob("texts/pypdf/*.failed"))


def test_page_has_the_stored_table() -> None:
    assert between(ROOT / "docs" / "lab" / "readers.md", "readers") == readers.tables(RESULT)
    assert len(RESULT["files"]) == len(readers.sources()) >= 100


def test_speed_of_a_reader_is_measured_over_all_files(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name * 3, "utf-8")
    seconds = readers.output(sys.executable, str(readers.CHILD), "Python", str(tmp_path), readers.CSV, "all")
    assert json.loads(seconds)["characters"] == 6
    found = {"plone.pgcatalog": {"version": "1", "seconds": 3.0, "characters": 4711}}
    shown = readers.tables(RESULT | {"speed": {"files": 20, "pages": 249, "readers": found}})
    assert shown.endswith("| plone.pgcatalog 1 | 3.0 | 150.0 | 4,711 |")
