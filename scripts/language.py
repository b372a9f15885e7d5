"""Finds words that the section *Language* of CONTRIBUTING.md rules out (``make lint``).

It reads the docstrings and comments of Python files, and the text of Markdown files without code.
"""

from collections.abc import Iterator
from pathlib import Path

import ast
import io
import re
import sys
import tokenize


ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", "benchmarks", "demo", "scripts", "checks", "tests")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs", "news")
#: Built pages, and a page with names of ZODB's tests.
EXCLUDED = ("docs/_build", "docs/reference/benchmark-results.md", "docs/reference/zodb-suites.md")

#: Pattern -> words to use instead, or the rule.
PATTERNS = {
    r"\b(?:return|yield|raise|give|read|tell|say|do)s? what\b": "a noun: Return the rows, not what was found",
    r"(?:^|[.:;!?]\s{1,2})What (?![^.:;]*\?)": "a noun as the subject",
    r"\b(?:no|some|any)body(?:'s)?\b": "user, caller, process, request",
    r"\bNone for (?:nothing|none|no)\b": "None if there is no …",
    r"\b(?:that|those|the one|one) of which\b": "a sentence of its own",
    r"\bmend(?:s|ed|ing)?\b": "repair",
    r"\b(?:tell|tells|told|telling)\b": "report, show, notify",
    r"\b(?:ask|asks|asked|asking)\b": "query, request, call",
    r"\bheed(?:s|ed|ing)?\b": "apply",
    r"\b(?:lend|lends|lent|lending)\b": "delegate",
    r"\b(?:keep|keeps|kept|keeping)\b": "store, cache, stay",
    r"\b(?:give|gives|gave|given|giving)s? up\b": "release, stop",
    r"\bsettl(?:e|es|ed|ing)\b": "resolve",
    r"\b(?:go|goes|went|going|gone|come|comes|came|coming) along\b": "be sent with",
    r"\b(?:bring|brings|brought|bringing)\b": "return, fetch",
}
COMPILED = [(re.compile(pattern, re.IGNORECASE | re.MULTILINE), remedy) for pattern, remedy in PATTERNS.items()]
CODE = re.compile(r"```.*?```|~~~.*?~~~|``[^`]*``|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->|https?://\S+", re.DOTALL)


def without_code(text: str) -> str:
    """Return *text* with its code, links and comments replaced by blanks; the number of lines stays the same."""
    return CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def sentences_of_source(source: str) -> Iterator[tuple[int, str]]:
    """Yield (first line, text) of each docstring and each block of comments in *source*, Python code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            expression = node.body[0]
            assert isinstance(expression, ast.Expr)
            yield expression.lineno, str(ast.literal_eval(expression.value))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


def findings(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line, words, remedy) for each match in *path*, a Python or Markdown file."""
    text = path.read_text("utf-8")
    parts = sentences_of_source(text) if path.suffix == ".py" else [(1, text)]
    for first, part in parts:
        prose = without_code(part)
        for pattern, remedy in COMPILED:
            for match in pattern.finditer(prose):
                yield first + prose.count("\n", 0, match.start()), match[0].strip(), remedy


def files(names: tuple[str, ...]) -> Iterator[Path]:
    """Yield the Python files and documents below *names*, files and folders of the project."""
    for name in names:
        path = ROOT / name
        found = [path] if path.is_file() else sorted(path.rglob("*.py")) + sorted(path.rglob("*.md"))
        for file in found:
            if not file.relative_to(ROOT).as_posix().startswith(EXCLUDED):
                yield file


def main() -> int:
    """Print the findings in the files and folders of the command line, by default all; return 1 if there are any, else 0."""
    names = tuple(sys.argv[1:]) or SOURCES + DOCUMENTS
    count = 0
    for path in files(names):
        for line, words, remedy in sorted(findings(path)):
            print(f"{path.relative_to(ROOT)}:{line}: {words!r}: {remedy}")
            count += 1
    print(f"{count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
