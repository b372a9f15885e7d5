"""The parts of a manual page that a site has as fields: names, summary, texts, references to other pages."""

from benchmarks.manuals import text_of_line
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gzip
import re


#: A request that begins a section.
_SECTION = re.compile(r"[.']\s*S[Hh]\b")
#: The dash between the names of a page and its description.
_DASH = re.compile(r"\s+(?:-{1,2}|[‐-―−])\s+")
#: A reference to another page: ``ls(1)``.
_REFERENCE = re.compile(r"([A-Za-z0-9_][\w.:+-]{0,60}+)\s?\(([1-8])[a-z]{0,5}\)")


@dataclass(frozen=True, slots=True)
class Manual:
    """A manual page.

    - *name* and *section* identify it in each language: ``ls`` and 1
    - *names* are those of its first section, and *summary* is the description behind them; () and "" if it has none
    - *texts* are the texts of the other sections
    - *references* are (name, section) of other pages
    """

    language: str
    name: str
    section: int
    names: tuple[str, ...]
    summary: str
    texts: tuple[str, ...]
    references: tuple[tuple[str, int], ...]


def lines_of(path: Path) -> list[str]:
    """Return the lines of the file at *path*, which may be compressed."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8", "replace").splitlines()


def manuals(folder: Path, language: str) -> Iterator[Manual]:
    """Yield the manual pages in *folder*, which are in *language*, without links to other pages."""
    for path in sorted(folder.glob("man[1-8]/*.gz")):
        lines = lines_of(path)
        if not path.is_symlink() and not any(line.startswith(".so ") for line in lines[:10]):
            name, _, section = path.name.removesuffix(".gz").rpartition(".")
            yield manual(language, name, int(section[0]), lines)


def manual(language: str, name: str, section: int, lines: list[str]) -> Manual:
    """Return the manual page of *lines*, in roff."""
    parts: list[list[str]] = []
    for line in lines:
        if _SECTION.match(line):
            parts.append([])
        text = text_of_line(line)
        if parts and text:
            # BSD's pages have a request for the description, and no dash.
            parts[-1].append(f"- {text}" if line.startswith(".Nd ") else text)
    # The first section has the names; the first line of each is its heading.
    first = " ".join(" ".join(parts[0][1:]).split()) if parts else ""
    names, dash, summary = first.partition(match[0]) if (match := _DASH.search(first)) else ("", "", "")
    texts = tuple("\n".join(part) for part in parts[1 if dash else 0 :])
    found = dict.fromkeys((match[1], int(match[2])) for text in texts for match in _REFERENCE.finditer(text))
    found.pop((name, section), None)
    listed = tuple(filter(None, (each.strip() for each in names.split(","))))
    return Manual(language, name, section, listed, summary, texts, tuple(found))
