"""Measures how well compounds are split without a dictionary: ``python -m benchmarks.compounds``.

The vocabulary is that of texts: the German manual pages of Debian (``apt-get install manpages-de``), and the demo's German
texts.  Words split by hand (``german_compounds*.txt``) are compared with the splits that the vocabulary makes.  For the manual
pages, the lexemes, the bytes and the time of their tsvectors are measured with and without parts.
"""

from benchmarks.machine import header
from benchmarks.manuals import GERMAN
from benchmarks.manuals import manual_pages
from benchmarks.manuals import manuals_of
from benchmarks.programs import run_program
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from demo.words import language
from demo.words import topics
from pathlib import Path
from plone.pgcatalog.fulltext import compounds
from plone.pgcatalog.fulltext.lexicon import tsvector_literal
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.stemming import stem
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.fulltext.tuning import listed_stop_words
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from Products.CMFPlone.UnicodeSplitter.splitter import I18NNormalizer
from Products.CMFPlone.UnicodeSplitter.splitter import Splitter
from Products.ZCTextIndex.Lexicon import Lexicon
from random import Random
from statistics import fmean
from typing import Any

import argparse
import psycopg
import re
import time


SEED = 47
FOLDER = Path(__file__).parent
#: Title of a list -> its file.
LISTS = {
    "first list": "german_compounds.txt",
    "second": "german_compounds_unseen.txt",
    "third": "german_compounds_unseen_2.txt",
    "fourth, tried once": "german_compounds_unseen_3.txt",
}
WORDS = LISTS["first list"]
#: Fewest documents with a word that the vocabulary covers.
COVERED = 3
#: Number of the demo's texts.
DEMO_TEXTS = 1_000
#: Number of manual pages whose tsvectors are measured.
MEASURED = 300
LEXICON = Lexicon(Splitter(), I18NNormalizer())


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


def labelled(name: str) -> list[Labelled]:
    """Return the words of the file *name*."""
    lines = [line for line in (FOLDER / name).read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [Labelled(*in_parts(line)) for line in lines]


def in_parts(line: str) -> tuple[str, tuple[str, ...]]:
    """Return the word and the parts of a *line* like ``Urlaub(s)|antrag``; no parts for a simple word."""
    [word] = words(LEXICON, [re.sub(r"[|()]", "", line)])
    return word, tuple(words(LEXICON, [re.sub(r"\(.*?\)", "", line).replace("|", " ")])) if "|" in line else ()


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
    stop = listed_stop_words()["de"]
    excluded = [{*words(LEXICON, [*stop, each["de"]])} for each in (compounds.NOT_FIRST, compounds.NOT_LAST)]
    return compounds.find_parts(counts, "de", *excluded)


def quality(counts: Counter[str], name: str) -> dict[str, Any]:
    """Return the figures of the splits that a vocabulary makes of the words of the file *name*, and those split wrongly."""
    split = compounds.splitter("de", *parts_of(counts))
    known = {stem("de", word) for word, number in counts.items() if number >= COVERED}
    both = labelled(name)
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


def costs(connection: Any, texts: list[str], counts: Counter[str]) -> dict[str, dict[str, float]]:
    """Return "off", "first" and "on" -> the mean lexemes, bytes and CPU time of the tsvectors of *texts*, not compressed.

    "first" is without cached splits.  The text is split into words, and its words have stems, before the time is taken.
    """
    splits = {"de": compounds.splitter("de", *parts_of(counts))}
    ways = {"off": Stemming("de", ("de",)), "first": Stemming("de", ("de",), lambda: splits)}
    figures: dict[str, list[tuple[int, int, float]]] = {}
    statement = "SELECT length(v), pg_column_size(v) FROM (SELECT %s::tsvector AS v OFFSET 0) AS t"
    for name, stemming in {**ways, "on": ways["first"]}.items():
        for text in texts:
            source = words(LEXICON, [text])
            tsvector_literal(source, (), ways["off"].lexemes_of("de"))
            started = time.process_time()
            literal, _ = tsvector_literal(source, (), stemming.lexemes_of("de"))
            elapsed = 1000 * (time.process_time() - started)
            row = connection.execute(statement, [literal]).fetchone()
            figures.setdefault(name, []).append((*row, elapsed))
    return {
        name: {"lexemes": round(fmean(n for n, _, _ in rows)), "bytes": round(fmean(b for _, b, _ in rows))}
        | {"cpu_ms": round(fmean(ms for *_, ms in rows), 2)}
        for name, rows in figures.items()
    }


def run(server: EmbeddedPostgres, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one run.  Raises SystemExit without manual pages, or without the package that most are of."""
    if options.manuals == GERMAN:
        manuals_of(["manpages-de"])  # a few German pages are of other packages
    pages = list(manual_pages(options.manuals.glob("man*/*.gz")))
    if not pages:
        raise SystemExit(f"{options.manuals} has no manual pages; name another folder with --manuals.")
    counts = counted(pages)
    with psycopg.connect(server.createdb("compounds"), autocommit=True) as connection:
        page = costs(connection, Random(SEED).sample(pages, min(len(pages), MEASURED)), counts)
        version = connection.info.parameter_status("server_version") or ""
    return header(version) | {
        "command": "python -m benchmarks.compounds",
        "pages": len(pages),
        "vocabularies": {
            **{title: quality(counts, name) for title, name in LISTS.items()},
            "the demo's texts": quality(counted(demo_texts(DEMO_TEXTS)), WORDS),
        },
        "parts": {kind: len(text.split()) for kind, text in zip(("first", "last"), parts_of(counts), strict=True)},
        "stored_bytes": sum(len(text.encode()) for text in parts_of(counts)),
        "page": page,
    }


def table(result: dict[str, Any]) -> str:
    """Return *result* as Markdown."""
    vocabularies = result["vocabularies"]
    rows = {
        "different words": lambda v: f"{v['texts_words']:,}",
        "compounds": lambda v: v["compounds"],
        "all parts in the vocabulary": lambda v: v["covered"],
        "split as by hand": lambda v: v["right"],
        "split, and a part is itself a compound": lambda v: v["coarse"],
        "split wrongly": lambda v: v["wrong"],
        "not split": lambda v: v["missed"],
        "right, of those with all parts": lambda v: f"{v['right_of_covered'] / max(v['covered'], 1):.1%}",
        "right, of all compounds": lambda v: f"{(v['right'] + v['coarse']) / v['compounds']:.1%}",
        "simple words": lambda v: v["simple"],
        "split": lambda v: f"{v['simple_split']} ({v['simple_split'] / v['simple']:.1%})",
    }
    lines = [f"| | {' | '.join(vocabularies)} |", f"|---|{'--:|' * len(vocabularies)}"]
    lines += [f"| {name} | {' | '.join(str(cell(v)) for v in vocabularies.values())} |" for name, cell in rows.items()]
    page = result["page"]
    lines += [
        "",
        f"{result['pages']:,} manual pages; `{result['command']}`, PostgreSQL {result['versions']['PostgreSQL']}.",
        "",
        "| the tsvector of a manual page | off | on | on, with words not seen before |",
        "|---|--:|--:|--:|",
    ]
    for name, title in {"lexemes": "lexemes", "bytes": "bytes", "cpu_ms": "ms of CPU to make it"}.items():
        lines.append(f"| {title} | {page['off'][name]:,} | {page['on'][name]:,} | {page['first'][name]:,} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manuals", type=Path, default=GERMAN, help="the folder of the German manual pages")
    run_program(parser, run, {"compounds": table})


if __name__ == "__main__":
    main()
