"""SQL is composed and sent, and never read back: who has to know something of a condition asks its structure."""

from collections.abc import Iterator
from pathlib import Path

import ast
import pytest
import re


PACKAGE = Path(__file__).parents[2] / "src" / "plone" / "pgcatalog"
SOURCES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
#: What the modules with regular expressions apply them to.
REGULAR_EXPRESSIONS = {
    "classic/did_you_mean.py": "search texts",
    "cli/slow.py": "periods",
    "classic/live_search.py": "search texts",
    "classic/page_facets.py": "months in addresses",
    "testing/host.py": "names of folders",
    "database/restored.py": "our own base.sql, for the names that it makes",
    "database/prepared.py": "placeholders, to number them: a part of rendering",
    "discovery/highlight.py": "texts",
    "discovery/suggest.py": "search texts",
    "fulltext/lexicon.py": "words",
    "fulltext/tsquery.py": "search texts",
    "fulltext/tuning.py": "settings",
    "indexes/keys.py": "values",
    "indexes/path.py": "paths",
    "observe/searches.py": "search texts",
    "results/urls.py": "paths",
    "sql/column.py": "names of indexes",
    "zmi/page.py": "names of pages",
}
#: Attributes that are SQL, or parts of it.
SQL = {"sql", "quoted", "ddl", "definition", "expression", "order_by"}
READING = {
    "casefold",
    "count",
    "endswith",
    "find",
    "findall",
    "finditer",
    "fullmatch",
    "index",
    "lower",
    "lstrip",
    "match",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rpartition",
    "rsplit",
    "rstrip",
    "search",
    "split",
    "startswith",
    "strip",
    "sub",
    "upper",
}
#: What only SQL says, where somebody looks for it in a text.
WORDS = re.compile(r"%s|::|\b(?:AND|ASC|BETWEEN|DESC|FROM|LIMIT|OFFSET|OR|ORDER BY|SELECT|USING|WHERE)\b")


def is_sql(node: ast.expr) -> bool:
    """Return whether *node* is SQL, or a part that was cut out of SQL."""
    if isinstance(node, ast.Subscript):
        return is_sql(node.value)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "quote"
    return isinstance(node, ast.Attribute) and node.attr in SQL


def looks_for_sql(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and WORDS.search(node.value) is not None


def reads_sql(source: str) -> Iterator[str]:
    """Yield the expressions in *source* that read SQL."""
    for node in ast.walk(ast.parse(source)):
        reads = False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READING:
            reads = is_sql(node.func.value) or any(is_sql(arg) or looks_for_sql(arg) for arg in node.args)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            reads = is_sql(node.left) or looks_for_sql(node.left) or is_sql(node.comparators[0])
        elif isinstance(node, ast.Subscript):
            reads = is_sql(node.value)
        if reads:
            yield ast.unparse(node)


@pytest.mark.parametrize("name", SOURCES)
def test_no_module_reads_sql(name: str) -> None:
    found = list(reads_sql(SOURCES[name].read_text("utf-8")))
    assert [read for read in found if "load_sql('base')" not in read] == []


def test_regular_expressions_are_for_other_texts() -> None:
    found = {
        name
        for name, path in SOURCES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Import) and "re" in [alias.name for alias in node.names])
        or (isinstance(node, ast.ImportFrom) and node.module == "re")
    }
    assert found == set(REGULAR_EXPRESSIONS)


@pytest.mark.parametrize(
    "source",
    [
        "_COSTLY.search(where.sql)",
        'where.sql[: match.start()].count("x")',
        '_PLACEHOLDER.findall(text[:3]).count("%s")',
        'term.removesuffix(" DESC")',
        'part.split(" AND ")',
        "quote(name) in asked",
        'index.definition.startswith("x")',
        "column.quoted[1:-1]",
        '" LIMIT " in text',
    ],
)
def test_the_law_finds_what_was_once_done(source: str) -> None:
    assert list(reads_sql(source))
