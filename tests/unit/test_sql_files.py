"""SQL in files: long statements are in the folder ``sql`` of their room."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.sql.files import read_sql
from plone.pgcatalog.sql.files import read_statement
from tests.unit.pages import project_files
from tests.unit.sources import modules
from tests.unit.sources import SOURCE
from tests.unit.sources import text

import ast
import pytest
import re


#: Lines of a string in Python that may hold SQL, its quotes included.
MOST_LINES = 5
SQL = re.compile(r"\b(?:ALTER|CASE|CREATE|DELETE|DROP|INSERT|SELECT|UPDATE|WITH) ")
FILES = sorted(SOURCE.rglob("*.sql"))


def long_sql(tree: ast.Module) -> Iterator[int]:
    """Yield the line of each string with SQL of more than MOST_LINES lines in *tree*, concatenated ones included."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and id(node) not in docstrings:
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            strings = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            if lines > MOST_LINES and any(SQL.search(part) for part in strings if isinstance(part, str)):
                yield node.lineno


@pytest.mark.parametrize(
    "source",
    [
        '''S = """\nSELECT 1\n\n\n\n\n"""''',
        '''S = f"""\nSELECT {a}\n\n\n\n\n"""''',
        """S = (\n"SELECT 1"\n" + 1"\n" + 1"\n" + 1"\n" + 1"\n" + 1")""",
        """S = ("SELECT " +\na +\nb +\nc +\nd +\ne)""",
    ],
)
def test_long_strings_with_sql_are_found(source: str) -> None:
    assert list(long_sql(ast.parse(source)))


def test_long_statements_are_in_files() -> None:
    found = [f"{path.relative_to(SOURCE)}:{line}" for path, tree in modules() for line in long_sql(tree)]
    assert found == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_sql_file_begins_with_a_comment_and_is_read_in_its_room(path: Path) -> None:
    assert text(path).startswith("-- ")
    assert path.parent.name == "sql"
    room = path.parents[1]
    read = re.compile(rf"""["']{path.stem}["']""")
    assert any(read.search(text(module)) for module in room.glob("*.py"))
    assert read_sql(room.name, path.stem) == text(path)


def test_statement_has_no_comment_lines() -> None:
    assert "--" in read_sql("queue", "claim")
    assert read_statement("queue", "claim").startswith("WITH next AS MATERIALIZED ( SELECT kind, ")


def test_sql_files_are_shipped() -> None:
    """A wheel has all files of the package that git does not ignore."""
    assert set(FILES) <= set(project_files())
