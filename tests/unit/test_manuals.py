"""Manual pages as the pages of a site: the parts of a page in roff, references, and words to search for."""

from benchmarks import debian
from benchmarks.debian import Found
from benchmarks.debian import texts_of
from benchmarks.known_items import ACROSS
from benchmarks.known_items import figures
from benchmarks.known_items import items
from benchmarks.known_items import OWN
from benchmarks.manual_parts import Manual
from benchmarks.manual_parts import manual
from benchmarks.manual_parts import manuals
from pathlib import Path

import gzip
import pytest


LINES = [
    '.\\" A comment',
    ".TH STRTOK 3",
    ".SH NAME",
    "strtok, strtok_r \\- extract tokens from strings",
    ".SH BESCHREIBUNG",
    "Teilt \\fIeine\\fP Zeichenkette.",
    ".nf",
    ".BR strstr (3),",
    "strtok(3) und \\-\\-help",
]


def test_page_has_names_summary_texts_and_references_to_others() -> None:
    page = manual("de", "strtok", 3, LINES)
    assert (page.names, page.summary) == (("strtok", "strtok_r"), "extract tokens from strings")
    assert page.texts == ("BESCHREIBUNG\nTeilt eine Zeichenkette.\nstrstr (3),\nstrtok(3) und --help",)
    assert page.references == (("strstr", 3),)


@pytest.mark.parametrize(
    ("lines", "summary"),
    [
        ([".Sh NAME", ".Nm ls", ".Nd list directory contents"], "list directory contents"),
        ([".SH 名前", "ls \\- 一覧 - 表示"], "一覧 - 表示"),
        ([".SH NOM", "a–b – tirets"], "tirets"),
        ([".SH NAME", "nothing"], ""),
        ([], ""),
    ],
)
def test_summary_stands_behind_the_first_dash(lines: list[str], summary: str) -> None:
    assert manual("en", "x", 1, lines).summary == summary


def test_links_are_no_pages(tmp_path: Path) -> None:
    folder = tmp_path / "man3"
    folder.mkdir()
    for name, lines in (("a.3.gz", LINES), ("b.3.gz", [".so man3/a.3"]), ("c.3posix.gz", LINES)):
        (folder / name).write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "d.3.gz").symlink_to(folder / "a.3.gz")
    assert [(page.name, page.section) for page in manuals(tmp_path, "de")] == [("a", 3), ("c", 3)]


def test_site_refers_to_earlier_pages_and_has_words_to_search_for() -> None:
    found = [
        Found(
            f"de, {number % 3}",
            "de",
            f"page{number}",
            "",
            ("<tag>", "<tag>"),
            (f"usual{'ab'[number % 2]} <stdio.h> often",),
            ("de", f"page{number}", 3),
            (("de", f"page{number - 1}", 3), ("de", f"page{number + 1}", 3), ("fr", "page0", 3)),
        )
        for number in range(30)
    ]
    texts = texts_of(found)
    paths = [f"{page.folder}/{page.id}" for page in texts.documents]
    assert len(set(paths)) == len(found)
    assert [page.related for page in texts.documents] == [(), *((path,) for path in paths[:-1])]
    assert (texts.folders, texts.languages) == (["de, 0", "de, 1", "de, 2"], ["de"])
    assert {(page.text[:22], page.tags) for page in texts.documents} == {
        ("usuala &lt;stdio.h&gt;", ("<tag>",)),
        ("usualb &lt;stdio.h&gt;", ("<tag>",)),
    }
    assert "often" in texts.words.frequent


def test_known_item_is_a_page_in_one_language_with_questions_of_others() -> None:
    texts = ("x" * 100,)
    summaries = {"en": "print a file and not more", "de": "eine Datei drucken", "fr": "eine Datei drucken"}
    found = [Manual(language, "file", 1, ("file",), summary, texts, ()) for language, summary in summaries.items()]
    alone = Manual("en", "alone", 1, ("alone",), "only in one language", texts, ())
    [item] = items([*found, alone], 10)
    across, own = item.questions
    assert (across[0], own[:2]) == (ACROSS, (OWN, item.manual.language))
    assert across[2] != item.manual.summary
    assert own[2] in ("print a more", "eine Datei drucken")
    assert figures([1, None, 4]) == {"questions": 3, "recall@10": 0.6667, "MRR": 0.4167}


def test_missing_package_is_reported_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(debian, "PACKAGES", ("manpages-of-no-language",))
    with pytest.raises(debian.NoTexts, match=r"apt-get (download|is missing)"):
        debian.fetched()
