"""The time for a visitor's text is proportional to its length: no regular expression backtracks.

A text is so long that backtracking would take hours; the time limit only ends that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hypothesis import given
from hypothesis import strategies as st
from importlib import import_module
from itertools import product
from pathlib import Path
from plone.pgcatalog.discovery.highlight import glob_regex
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.fulltext.tsquery import compile_text
from plone.pgcatalog.fulltext.tuning import Meaning
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.sql.column import Column
from Products.ZCTextIndex import QueryParser
from tests.unit.lexicons import plone_lexicon
from tests.unit.sources import SOURCE
from tests.unit.sources import text
from typing import Any

import ast
import pytest
import re
import signal


#: Modules with regular expressions that process texts typed by visitors or authors.
VISITORS = {
    *(
        "classic.suggestions",
        "searchpage.facets",
        "discovery.file_pages",
        "discovery.highlight",
        "discovery.hints",
        "discovery.spelling",
    ),
    *(
        "fulltext.lexicon",
        "fulltext.places",
        "fulltext.signs",
        "fulltext.whole_words",
        "fulltext.text_index",
        "fulltext.tsquery",
        "fulltext.word_lookup",
    ),
    *("fulltext.tuning", "fulltext.typed"),
    *("core.references", "files.charset", "files.empty", "files.kinds", "indexes.keys", "sql.values"),
    *("meaning.text", "meaning.question", "observe.plan", "observe.searches", "request", "results.brain"),
}
FORMATS = ("biff", "library", "mail", "numbers", "ole", "pdf", "reading", "wordperfect")
#: Module -> the texts processed by its regular expressions.
OTHERS = {
    "testing.host": "the output of PostgreSQL's programs",
    "database.prepared": "our own statements",
    "database.expected": "our own base.sql",
    "storage.records": "pickles, by patterns without repetition",
    "cli.reports": "a period",
    "sql.column": "names of indexes",
    "zmi.page": "templates of Zope",
    **dict.fromkeys((f"files.formats.{name}" for name in FORMATS), "files, in a process with a limit of time"),
}
#: Strings that are repeated, LENGTH characters in all, between a beginning and an end.
UNITS = ("a", "-", '"', '-"', "1 ", "1", " ", "1-", "<", "<a ", 'x id="search-results-number" ', ' id="search-results"')
UNITS = (
    *UNITS,
    "*",
    "?",
    "*?",
    "a*",
    "''",
    "'a",
    "\\",
    "a'",
    "\x01",
    "\ue000",
    ".",
    "1.",
    "ab-",
    "\u65e5",
    "@ ",
    "<!---->",
    "<?x?>",
)
ENDS = ("", "!", '"')
LENGTH = 100_000
SECONDS = 120


@contextmanager
def limited() -> Iterator[None]:
    """Raise TimeoutError in the block after SECONDS, even inside of a regular expression, which checks for signals."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def patterns() -> Iterator[Any]:
    """Yield all constant regular expressions of VISITORS' modules, and that of the query parser."""
    yield pytest.param(QueryParser._tokenizer_unicode_regex, id="QueryParser")
    for name in sorted(VISITORS):
        module = import_module(f"plone.pgcatalog.{name}")
        found = {key: value for key, value in vars(module).items() if isinstance(value, re.Pattern)}
        for call in ast.walk(ast.parse(text(Path(module.__file__ or "")))):
            is_re = isinstance(call, ast.Call) and ast.unparse(call.func).startswith("re.")
            if is_re and isinstance(call.args[0], ast.Constant) and call.func.attr != "compile":
                found[f"line {call.lineno}"] = re.compile(call.args[0].value)
        yield from (pytest.param(pattern, id=f"{name} {key}") for key, pattern in found.items())


def test_each_module_with_regular_expressions_is_listed() -> None:
    paths = [path for path in SOURCE.rglob("*.py") if re.search(r"^import re$", text(path), re.M)]
    names = {".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths}
    assert names == VISITORS | set(OTHERS)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", patterns())
def test_regular_expressions_read_a_text_once(pattern: re.Pattern[Any]) -> None:
    with limited():
        for unit, begin, end in product(UNITS, ("", "<div "), ENDS):
            hostile: Any = begin + unit * (LENGTH // len(unit)) + end
            if isinstance(pattern.pattern, bytes):
                hostile = hostile.encode()
            pattern.fullmatch(hostile)
            assert sum(1 for _ in pattern.finditer(hostile)) <= len(hostile) + 1


# -- words with wildcards

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
    for wild, page in WILD:
        with limited():
            marks = Highlighter([(plone_lexicon(), wild)])
            assert marks
            assert "mark" not in marks.mark(page)


def test_snippets_find_the_places_of_words_in_one_pass() -> None:
    with limited():
        for page in ("in," * 100_000, "in" * 100_000, "x-" * 100_000 + "in", "ж" * 100_000, "ß" * 100_000):
            assert Highlighter([(plone_lexicon(), "inner OR *in*")]).snippet(page)


@given(st.text("ab*?", min_size=1, max_size=12), st.text("ab", max_size=14))
def test_wildcards_are_those_of_zctextindex(pattern: str, word: str) -> None:
    """As translated by ``Lexicon.globToWordIds``."""
    theirs = "".join({"*": ".*", "?": "."}.get(char, char) for char in pattern)
    assert bool(glob_regex(pattern).fullmatch(word)) == bool(re.match(f"{theirs}$", word))


@pytest.mark.parametrize(
    ("pattern", "found"), [("wa*", ["Water", "wafer"]), ("w?t*r", ["Water"]), ("*wa?er", ["Water", "wafer"])]
)
def test_words_with_wildcards_are_marked(pattern: str, found: list[str]) -> None:
    marked = Highlighter([(plone_lexicon(), pattern)]).mark("Water, wafer and a river")
    assert re.findall("<mark>(.*?)</mark>", marked) == found


# -- nesting


@pytest.mark.parametrize("words", ["a", "a*b", '"a b"'])
@pytest.mark.parametrize("operator", ["AND", "OR", "AND NOT"])
@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_text_of_any_nesting_is_answered(words: str, operator: str, step: int) -> None:
    """A text nested deeper than Python's stack is treated as plain words; compiling recurs no deeper than parsing."""
    lexicon, column = plone_lexicon(), Column("t", "tsvector")
    meaning = Meaning({("x",): (("y",),)}, frozenset({("z",)}))
    for depth in (*range(1, 400, step), 5000 if step == 1 else 1200):
        try:
            clause = compile_text(lexicon, f"x {operator} (" * depth + words + ")" * depth, column, meaning)
        except LimitExceeded:
            assert depth > 990
        else:
            assert clause.condition.sql
