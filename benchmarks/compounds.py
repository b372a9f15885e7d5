"""Measures how well compounds are split without a dictionary: ``python -m benchmarks.compounds``.

The vocabulary is that of texts: the German manual pages of Debian (``apt-get install manpages-de``), and the demo's German
texts.  Words split by hand (``german_compounds.txt``) are compared with the splits that the vocabulary makes.  For the manual
pages, the lexemes and bytes of their tsvectors and the time of a save are measured with and without parts.
"""

from benchmarks.machine import header
from benchmarks.marks import put_between
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from demo.words import language
from demo.words import topics
from pathlib import Path
from plone.app.textfield import RichTextValue
from plone.pgcatalog.fulltext import compounds
from plone.pgcatalog.fulltext.lexicon import tsvector_literal
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.stemming import stem
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.settings import SETTINGS_ATTRIBUTE
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from Products.CMFPlone.UnicodeSplitter.splitter import I18NNormalizer
from Products.CMFPlone.UnicodeSplitter.splitter import Splitter
from Products.ZCTextIndex.Lexicon import Lexicon
from random import Random
from statistics import fmean
from statistics import median
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any

import argparse
import gzip
import json
import psycopg
import re
import time
import transaction


SEED = 47
WORDS = Path(__file__).parent / "german_compounds.txt"
MANUALS = Path("/usr/share/man/de")
#: Number of the demo's texts.
DEMO_TEXTS = 1_000
#: Pages of a site whose saves are measured, and saves of each.
SAVED, ROUNDS = 30, 4
LEXICON = Lexicon(Splitter(), I18NNormalizer())
#: Requests of roff whose arguments are text.
_TEXT = frozenset("B I BR IR RB RI BI IB SH SS TP IP SM SB Nm Sh Ss Em Sy Nd".split())  # noqa: SIM905
#: Escapes of roff: fonts, sizes, characters, strings, and marks of one character.
_ESCAPE = re.compile(r"\\(?:f(?:\(..|\[[^\]]*\]|.)|s[+-]?\d|\(..|\[[^\]]*\]|\*(?:\(..|\[[^\]]*\]|.)|.)")


@dataclass(frozen=True)
class Labelled:
    """A *word* in the lexicon's form, and its *parts*, split by hand; none for a simple word."""

    word: str
    parts: tuple[str, ...]

    @property
    def stems(self) -> tuple[str, ...]:
        return tuple(stem("de", part) for part in self.parts)

    def judge(self, found: tuple[str, ...]) -> str:
        """Return whether the stems *found* are ``right``, ``coarse`` (a part is itself a compound), ``wrong`` or ``missed``."""
        if not found:
            return "missed"
        if found == self.stems:
            return "right"
        # Each part must begin where one begins that was split by hand.
        starts = {0}
        for part in self.parts[:-1]:
            starts.add(self.word.index(part, max(starts)) + len(part))
        place, places = 0, []
        for part in found:
            place = self.word.find(part, place)
            places.append(place)
            place += len(part)
        return "coarse" if all(any(0 <= p - s <= 2 for s in starts) for p in places) else "wrong"


def labelled() -> list[Labelled]:
    """Return the words of ``german_compounds.txt``."""
    lines = [line for line in WORDS.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    found = []
    for line in lines:
        [word] = words(LEXICON, [re.sub(r"[|()]", "", line)])
        parts = words(LEXICON, [re.sub(r"\(.*?\)", "", line).replace("|", " ")]) if "|" in line else ()
        found.append(Labelled(word, tuple(parts)))
    return found


def manual_pages(folder: Path) -> Iterator[str]:
    """Yield the text of each manual page in *folder*, without the requests and escapes of roff."""
    for path in sorted(folder.glob("man*/*.gz")):
        lines = gzip.decompress(path.read_bytes()).decode("utf-8", "replace").splitlines()
        yield "\n".join(filter(None, map(text_of_line, lines)))


def text_of_line(line: str) -> str:
    """Return the text of a *line* of roff; "" for a request without text."""
    if line[:1] in (".", "'"):
        request, _, line = line[1:].partition(" ")
        if request not in _TEXT:
            return ""
    return _ESCAPE.sub(lambda match: "-" if match[0] == r"\-" else "", line)


def demo_texts(number: int) -> Iterator[str]:
    """Yield *number* German texts of the demo."""
    chance, german = Random(SEED), language("de")
    for _ in range(number):
        topic = chance.choice(topics())
        yield f"{german.title(chance, topic)} {german.paragraph(chance, topic, 150)}"


def counted(texts: Iterable[str]) -> Counter[str]:
    """Return word -> number of *texts* with it."""
    return Counter(word for text in texts for word in set(words(LEXICON, [text])))


def parts_of(counts: Counter[str]) -> tuple[str, str]:
    stop = compounds.listed_stop_words()["de"]
    return compounds.find_parts(counts, "de", {*words(LEXICON, [*stop, compounds.PARTICLES["de"]])})


def quality(counts: Counter[str]) -> dict[str, Any]:
    """Return the figures of the splits of a vocabulary, with the words that are split wrongly."""
    split = compounds.splitter("de", *parts_of(counts))
    known = {stem("de", word) for word, number in counts.items() if number >= compounds.FEWEST}
    both = labelled()
    composed, simple = [w for w in both if w.parts], [w for w in both if not w.parts]
    judged = {word: word.judge(split(word.word)) for word in composed}
    covered = [word for word in composed if known.issuperset(word.stems)]
    wrong = {word.word: split(word.word) for word in simple if split(word.word)}
    wrong |= {word.word: split(word.word) for word in composed if judged[word] == "wrong"}
    return {
        "texts_words": len(counts),
        "compounds": len(composed),
        "covered": len(covered),
        **{kind: sum(each == kind for each in judged.values()) for kind in ("right", "coarse", "wrong", "missed")},
        "right_of_covered": sum(judged[word] in ("right", "coarse") for word in covered),
        "simple": len(simple),
        "simple_split": sum(word.word in wrong for word in simple),
        "examples": wrong,
    }


def sizes(connection: Any, texts: Iterable[str], stemmings: dict[str, Stemming]) -> dict[str, dict[str, float]]:
    """Return name -> mean lexemes and bytes of the tsvectors of *texts*, not compressed."""
    figures: dict[str, list[tuple[int, int]]] = {name: [] for name in stemmings}
    for text in texts:
        source = words(LEXICON, [text])
        for name, stemming in stemmings.items():
            literal, _ = tsvector_literal(source, (), stemming.lexemes_of("de"))
            statement = "SELECT length(v), pg_column_size(v) FROM (SELECT %s::tsvector AS v OFFSET 0) AS t"
            figures[name].append(connection.execute(statement, [literal]).fetchone())
    return {
        name: {"lexemes": round(fmean(n for n, _ in rows)), "bytes": round(fmean(b for _, b in rows))}
        for name, rows in figures.items()
    }


def saves(portal: Any, texts: list[str], counts: Counter[str]) -> dict[str, float]:
    """Return the median time of a save of a page, in ms, without and with the setting, and of the first time with it."""
    catalog = portal.portal_catalog
    pages = [
        create(portal, "Document", f"page-{n}", title=text[:40], language="de", text=RichTextValue(text, "text/plain"))
        for n, text in enumerate(texts)
    ]
    catalog._compound_words = compounds.CompoundWords({"de": parts_of(counts)})
    transaction.commit()
    times: dict[str, list[float]] = {"off": [], "first": [], "on": []}
    for number in range(ROUNDS * 2):
        on = number % 2 == 1
        settings = getattr(catalog, SETTINGS_ATTRIBUTE, {}) | {"languages": ("de",), "split_compounds": on}
        setattr(catalog, SETTINGS_ATTRIBUTE, settings)
        transaction.commit()
        for page in pages:
            page.description = f"{number}"
            started = time.perf_counter()
            page.reindexObject()
            transaction.commit()
            times["first" if number == 1 else "on" if on else "off"].append(1000 * (time.perf_counter() - started))
    return {name: round(median(values), 2) for name, values in times.items()}


def run(server: EmbeddedPostgres, manuals: Path) -> dict[str, Any]:
    """Return the figures of one run."""
    pages = list(manual_pages(manuals))
    if not pages:
        raise SystemExit(
            f"{manuals} has no manual pages; install the package manpages-de, or name the folder with --manuals."
        )
    counts = counted(pages)
    sites.start_zope()
    dsn = server.createdb("compounds")
    sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
    chosen = Random(SEED).sample(pages, SAVED)
    splits = {"de": compounds.splitter("de", *parts_of(counts))}
    stemmings = {"off": Stemming("de", ("de",)), "on": Stemming("de", ("de",), splits)}
    with psycopg.connect(dsn, autocommit=True) as connection:
        size = sizes(connection, Random(SEED).sample(pages, min(len(pages), 300)), stemmings)
        version = connection.info.parameter_status("server_version") or ""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        saved = saves(portal, chosen, counts)
    return header(version) | {
        "command": "python -m benchmarks.compounds",
        "pages": len(pages),
        "vocabularies": {
            "German manual pages": quality(counts),
            "the demo's German texts": quality(counted(demo_texts(DEMO_TEXTS))),
        },
        "parts": {kind: len(text.split()) for kind, text in zip(("first", "last"), parts_of(counts), strict=True)},
        "stored_bytes": sum(len(text.encode()) for text in parts_of(counts)),
        "page": size,
        "save_ms": saved,
    }


def table(result: dict[str, Any]) -> str:
    """Return *result* as Markdown."""
    vocabularies = result["vocabularies"]
    rows = {
        "different words": lambda v: f"{v['texts_words']:,}",
        f"of {next(iter(vocabularies.values()))['compounds']} compounds: all parts in the vocabulary": lambda v: v[
            "covered"
        ],
        "split as by hand": lambda v: v["right"],
        "split, and a part is itself a compound": lambda v: v["coarse"],
        "split wrongly": lambda v: v["wrong"],
        "not split": lambda v: v["missed"],
        "right, of those with all parts": lambda v: f"{v['right_of_covered'] / max(v['covered'], 1):.0%}",
        f"of {next(iter(vocabularies.values()))['simple']} simple words: split": lambda v: v["simple_split"],
    }
    lines = [f"| | {' | '.join(vocabularies)} |", f"|---|{'--:|' * len(vocabularies)}"]
    lines += [f"| {name} | {' | '.join(str(cell(v)) for v in vocabularies.values())} |" for name, cell in rows.items()]
    page, save = result["page"], result["save_ms"]
    lines += [
        "",
        f"{result['pages']:,} manual pages; `{result['command']}`, PostgreSQL {result['versions']['PostgreSQL']}.",
        "",
        "| a manual page | off | on |",
        "|---|--:|--:|",
        f"| lexemes | {page['off']['lexemes']:,} | {page['on']['lexemes']:,} |",
        f"| bytes of its tsvector | {page['off']['bytes']:,} | {page['on']['bytes']:,} |",
        f"| a save, ms | {save['off']} | {save['on']} |",
        f"| its first save in a process, ms | – | {save['first']} |",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manuals", type=Path, default=MANUALS, help="the folder of the German manual pages")
    parser.add_argument("--output", type=Path, help="keep the figures in this JSON file")
    parser.add_argument("--page", type=Path, help="put the table into this page of the documentation")
    options = parser.parse_args()
    with EmbeddedPostgres(settings=TEST_SETTINGS) as server:
        result = run(server, options.manuals)
    print(table(result))
    if options.output:
        options.output.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", "utf-8")
    if options.page:
        put_between(options.page, "compounds", table(result))


if __name__ == "__main__":
    main()
