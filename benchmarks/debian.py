"""Pages of real texts: the manual pages of Debian in nine languages, and what else its packages document.

The packages are downloaded by ``apt-get``, and unpacked into a folder of the user: nothing is installed, and nothing of the
texts is stored in results.
"""

from benchmarks.documents import documents
from benchmarks.manual_parts import lines_of
from benchmarks.manual_parts import Manual
from benchmarks.manual_parts import manuals
from benchmarks.texts import Texts
from benchmarks.texts import Vocabulary
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path
from plone.pgcatalog.fulltext.tuning import listed_stop_words
from Products.CMFPlone.UnicodeSplitter.config import rx_all
from random import Random

import os
import re
import subprocess


SEED = 48
#: Language -> the folder of its manual pages in the packages.
LANGUAGES = {
    **{"en": "", "de": "de", "es": "es", "fr": "fr", "ja": "ja", "pl": "pl", "pt": "pt_BR", "ru": "ru", "zh": "zh_CN"},
}
PACKAGES = (
    *("manpages", "manpages-dev", "manpages-zh"),
    *(f"manpages-{each}{kind}" for each in ("de", "es", "fr", "ja", "pl", "pt-br", "ru") for kind in ("", "-dev")),
)
#: Documents of the installed packages, for sites with more pages than there are manual pages.
DOCUMENTATION = Path("/usr/share/doc")
READMES = ("README*", "NEWS*", "TODO*", "*.txt*")
CHANGELOGS = ("changelog*", "NEWS.Debian*")
#: Fewest characters of a text, and most bytes of a file of documentation.
SHORTEST, LARGEST = 100, 4_000_000
#: Most tags and related items of a page.
TAGS, RELATED = 6, 5
#: Number of the searches for two words.
PAIRS = 18_000
#: The beginning of a version in a changelog of a Debian package: name, version.
_VERSION = re.compile(r"^(\S+) \(([^)\s]+)\) ", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{4,20}+")


class NoTexts(RuntimeError):
    """The texts are missing."""


@dataclass(frozen=True, slots=True)
class Found:
    """A text: the title of its folder, its own *title*, *tags* and paragraphs, and what it refers to and is referred to by."""

    folder: str
    language: str
    title: str
    description: str
    tags: tuple[str, ...]
    paragraphs: tuple[str, ...]
    key: tuple[str, str, int] | None = None
    references: tuple[tuple[str, str, int], ...] = ()


# -- the packages


def fetched() -> Path:
    """Return the folder of the manual pages, after downloading the packages that it has not.  Raises NoTexts."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "plone.pgcatalog" / "manuals"
    folder.mkdir(parents=True, exist_ok=True)
    missing = [package for package in PACKAGES if not (folder / f"{package}.unpacked").exists()]
    if missing:
        # All in one call: either each package is known, or nothing is downloaded.
        _run(folder, "apt-get", "download", "--quiet", *missing)
    for package in missing:
        [archive, *_] = sorted(folder.glob(f"{package}_*.deb"))
        _run(folder, "dpkg-deb", "--extract", archive.name, ".")
        archive.unlink()
        (folder / f"{package}.unpacked").touch()
    return folder / "usr" / "share" / "man"


def _run(folder: Path, *command: str) -> None:
    """Run *command* in *folder*.  Raises NoTexts."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NoTexts(f"{command[0]} is missing: the texts are packages of Debian.") from error
    if done.returncode:
        raise NoTexts(f"{' '.join(command)} failed; run apt-get update as root first.\n{done.stderr.strip()}")


# -- the texts


def all_manuals() -> Iterator[Manual]:
    """Yield all manual pages.  Raises NoTexts."""
    folder = fetched()
    for language, name in LANGUAGES.items():
        yield from manuals(folder / name, language)


def found_manuals() -> Iterator[Found]:
    """Yield the texts of the manual pages."""
    for each in all_manuals():
        if sum(map(len, each.texts)) >= SHORTEST:
            yield Found(
                f"{each.language}, {each.section}",
                each.language,
                f"{', '.join(each.names[:3]) or each.name} ({each.section})",
                each.summary,
                each.names[:TAGS],
                each.texts,
                (each.language, each.name, each.section),
                tuple((each.language, *reference) for reference in each.references),
            )


def found_documents(folder: Path = DOCUMENTATION) -> Iterator[Found]:
    """Yield the texts of READMEs, and of each version in a changelog, of the packages in *folder*."""
    for package in sorted(each for each in folder.iterdir() if each.is_dir() and not each.is_symlink()):
        name = package.name
        for path in _files(package, READMES):
            text = "\n".join(lines_of(path))
            title = f"{path.name.removesuffix('.gz')} of {name}"
            yield Found("READMEs", "en", title, "", (name,), tuple(re.split(r"\n\s*\n", text)))
        for path in _files(package, CHANGELOGS):
            text = "\n".join(lines_of(path))
            begins = [*_VERSION.finditer(text)]
            ends = [*(match.start() for match in begins[1:]), len(text)]
            for match, end in zip(begins, ends, strict=False):
                title = f"{match[1]} {match[2]}"
                entry = text[match.end() : end]
                yield Found(
                    f"Versions, {name[0]}", "en", title, "", (name, match[1]), tuple(re.split(r"\n\s*\n", entry))
                )


def _files(package: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the files of *package* with one of the *patterns*, without links and very large ones."""
    found = {path for pattern in patterns for path in package.glob(pattern)}
    return sorted(path for path in found if path.is_file() and not path.is_symlink() and path.stat().st_size < LARGEST)


@cache
def debian_texts(count: int) -> Texts:
    """Return a site with *count* pages: manual pages, then other documents; the same ones on each call.  Raises NoTexts."""
    chance = Random(SEED)
    found = [*found_manuals()]
    chance.shuffle(found)
    if len(found) < count:
        others = [each for each in found_documents() if sum(map(len, each.paragraphs)) >= SHORTEST]
        chance.shuffle(others)
        found += others[: count - len(found)]
    if len(found) < count:
        raise NoTexts(f"{DOCUMENTATION} has too few texts for {count:,} pages: {len(found):,}. Install more packages.")
    return texts_of(found[:count])


def texts_of(found: list[Found]) -> Texts:
    """Return the site with the pages *found*."""
    folders = list(dict.fromkeys(each.folder for each in found))
    paths: dict[tuple[str, str, int] | None, str] = {}
    pages = []
    for document, each in zip(documents(len(found)), found, strict=True):
        folder = f"folder{folders.index(each.folder)}"
        slug = re.sub(r"[^a-z0-9]+", "-", each.title.lower()).strip("-")[:40]
        page = replace(
            document,
            folder=folder,
            id=f"{slug}-{document.number}".strip("-"),
            title=each.title,
            description=each.description,
            tags=tuple(dict.fromkeys(each.tags)),
            text="</p><p>".join(escape(paragraph) for paragraph in each.paragraphs),
            language=each.language,
            # Of pages before this one, because a relation needs its target.
            related=tuple(paths[key] for key in each.references if key in paths)[:RELATED],
        )
        if each.key is not None:
            paths[each.key] = f"{page.folder}/{page.id}"
        pages.append(page)
    return Texts(pages, folders, vocabulary([" ".join((e.title, e.description, *e.paragraphs)) for e in found]))


def vocabulary(texts: list[str]) -> Vocabulary:
    """Return the words to search for of *texts*, by the shares of the generated texts; without stop words."""
    chance, count = Random(SEED), len(texts)
    words = [sorted({word.casefold() for word in _WORD.findall(text)}) for text in texts]
    numbers = Counter(word for each in words for word in each)
    stop_words = {word for each in listed_stop_words().values() for word in each}
    searched = {
        word: number / count
        for word, number in numbers.most_common()
        if word not in stop_words and not rx_all.search(word)
    }
    frequent = [word for word, share in searched.items() if share >= 0.05][:20]
    usual = [word for word, share in searched.items() if 0.005 <= share < 0.02]
    rare = [word for word, share in searched.items() if 1 / count < share <= 0.002] or list(searched)[-100:]
    kinds = frozenset(frequent), frozenset(usual)
    pairs: dict[str, None] = {}
    for _ in range(2 * PAIRS):
        of_page = chance.choice(words)
        first, second = ([word for word in of_page if word in kind] for kind in kinds)
        if first and second:
            pairs[f"{chance.choice(first)} {chance.choice(second)}"] = None
    return Vocabulary(
        tuple(frequent),
        tuple(chance.sample(usual, min(len(usual), 900))),
        tuple(chance.sample(rare, min(len(rare), 4_000))),
        tuple(pairs)[:PAIRS],
    )
