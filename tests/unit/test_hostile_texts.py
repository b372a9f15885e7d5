"""The time for a visitor's text is proportional to its length: no regular expression backtracks.

Each law runs in a process of its own.  A text is so long that backtracking would take hours; the time limit only ends that.
"""

from collections.abc import Iterator
from hypothesis import given
from hypothesis import strategies as st
from importlib import import_module
from pathlib import Path
from plone.pgcatalog.discovery.highlight import glob_regex
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.fulltext.tsquery import compile_text
from plone.pgcatalog.fulltext.tuning import Meaning
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.sql.column import Column
from Products.ZCTextIndex import QueryParser
from tests.unit.lexicons import plone_lexicon
from typing import Any

import ast
import plone.pgcatalog
import pytest
import re
import subprocess
import sys


SOURCE = Path(plone.pgcatalog.__file__).parent
#: Modules with regular expressions that process texts typed by visitors or authors.
VISITORS = {
    *("classic.page_facets", "classic.suggestions", "discovery.highlight", "discovery.suggest"),
    *("fulltext.lexicon", "fulltext.text_index", "fulltext.tsquery", "fulltext.tuning", "fulltext.typed"),
    *("core.references", "indexes.keys", "sql.values"),
    *("meaning.text", "meaning.question", "observe.plan", "observe.searches", "request", "results.brain"),
}
#: Module -> the texts processed by its regular expressions.
OTHERS = {
    "testing.host": "the output of PostgreSQL's programs",
    "database.prepared": "our own statements",
    "database.expected": "our own base.sql",
    "storage.records": "pickles, by patterns without repetition",
    "cli.reports": "a period",
    "sql.column": "names of indexes",
    "zmi.page": "templates of Zope",
}
#: Strings that are repeated, LENGTH characters in all, between a beginning and an end.
UNITS = ("a", "-", '"', '-"', "1 ", "1", " ", "1-", "<", "<a ", 'x id="search-results-number" ', ' id="search-results"')
UNITS = (*UNITS, "*", "?", "*?", "a*", "''", "'a", "\\", "a'", "\x01", "\ue000", ".", "1.", "ab-", "\u65e5", "@ ")
ENDS = ("", "!", '"')
LENGTH = 200_000
SECONDS = 120

TRY = f"""
import re, sys
pattern = re.compile(eval(sys.argv[1]), int(sys.argv[2]))
for unit in {UNITS!r}:
    for begin in ("", "<div "):
        for end in {ENDS!r}:
            text = begin + unit * ({LENGTH} // len(unit)) + end
            pattern.fullmatch(text)
            sum(1 for found in pattern.finditer(text))
"""


def module_names() -> Iterator[str]:
    for path in SOURCE.rglob("*.py"):
        if re.search(r"^import re$", path.read_text(encoding="utf-8"), re.M):
            yield ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def patterns() -> Iterator[Any]:
    """Yield all constant regular expressions of VISITORS' modules, and that of the query parser."""
    yield pytest.param(QueryParser._tokenizer_unicode_regex, id="QueryParser")
    for name in sorted(VISITORS):
        module = import_module(f"plone.pgcatalog.{name}")
        found = {key: value for key, value in vars(module).items() if isinstance(value, re.Pattern)}
        tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
        for call in ast.walk(tree):
            is_re = isinstance(call, ast.Call) and ast.unparse(call.func).startswith("re.")
            if is_re and isinstance(call.args[0], ast.Constant) and call.func.attr != "compile":
                found[f"line {call.lineno}"] = re.compile(call.args[0].value)
        yield from (pytest.param(pattern, id=f"{name} {key}") for key, pattern in found.items())


def test_each_module_with_regular_expressions_is_listed() -> None:
    assert set(module_names()) == VISITORS | set(OTHERS)


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, "-c", *arguments], check=True, timeout=SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", patterns())
def test_regular_expressions_read_a_text_once(pattern: re.Pattern[str]) -> None:
    run(TRY, ascii(pattern.pattern), str(int(pattern.flags)))


# -- words with wildcards

SNIPPET = """
from plone.pgcatalog.discovery.highlight import Highlighter
from tests.unit.lexicons import plone_lexicon
import sys
for text, page in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    marks = Highlighter([(plone_lexicon(), text)])
    assert marks and "mark" not in marks.mark(page), text
"""
#: A text, and a page that is searched for it.
WILD = [
    ("a***************qqq OR water", "a" * 50),
    ("a" + "*?" * 500 + "qqq", "a" * 2000),
    ("a*" * 500 + "q", "a" * 2000),
    ("a" + "*aaa?a" * 300 + "q", "a" * 20_000),
    (" OR ".join("a" + "*" * n + "a" * n + "*q" for n in range(1, 11)), "a" * 20_000),
    (" OR ".join(f"{'b' * n}a*" for n in range(1, 300)), " ".join(f"{'b' * n}c" for n in range(300, 500))),
]


def test_snippets_of_wildcards_read_a_word_once() -> None:
    run(SNIPPET, *(each for pair in WILD for each in pair))


@given(st.text("ab*?", min_size=1, max_size=12), st.text("ab", max_size=14))
def test_wildcards_are_those_of_zctextindex(pattern: str, word: str) -> None:
    """As translated by ``Lexicon.globToWordIds``."""
    theirs = "".join({"*": ".*", "?": "."}.get(char, char) for char in pattern)
    assert bool(glob_regex(pattern).fullmatch(word)) == bool(re.match(f"{theirs}$", word))


@pytest.mark.parametrize(
    ("pattern", "found"), [("wa*", ["Water", "wafer"]), ("w?t*r", ["Water"]), ("*wa?er", ["Water", "wafer"])]
)
def test_words_with_wildcards_are_marked(pattern: str, found: list[str]) -> None:
    text = Highlighter([(plone_lexicon(), pattern)]).mark("Water, wafer and a river")
    assert re.findall("<mark>(.*?)</mark>", text) == found


# -- nesting


@pytest.mark.parametrize("words", ["a", "a*b", '"a b"'])
@pytest.mark.parametrize("operator", ["AND", "OR", "AND NOT"])
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_text_of_any_nesting_is_answered(words: str, operator: str, step: int) -> None:
    """A text nested deeper than Python's stack is treated as plain words; compiling recurs no deeper than parsing."""
    lexicon, column = plone_lexicon(), Column("t", "tsvector")
    meaning = Meaning({("x",): (("y",),)}, frozenset({("z",)}))
    for depth in (*range(1, 400, step), 5000 if step == 1 else 1200):
        text = f"x {operator} (" * depth + words + ")" * depth
        try:
            clause = compile_text(lexicon, text, column, meaning)
        except LimitExceeded:
            assert depth > 990
        else:
            assert clause.condition.sql
