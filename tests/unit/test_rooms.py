"""Architecture: the picture of the rooms, exclusive tasks, keys of locks, SQL that no module parses, and SQL in files."""

from collections.abc import Iterator
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.files import read_sql
from plone.pgcatalog.sql.files import read_statement
from tests.unit.sources import modules
from tests.unit.sources import project_files
from tests.unit.sources import ROOT
from tests.unit.sources import SOURCE
from tests.unit.sources import text
from zodb_pgjsonb.cache_warmer import WARMER_LOCK_NS
from zodb_pgjsonb.startup_locks import STARTUP_DDL_LOCK_NS

import ast
import pytest
import re
import tomllib


TREES = {path.relative_to(SOURCE).as_posix(): tree for path, tree in modules()}
#: Modules that start servers: for tests and the demo, never in a Zope process of a site.
SERVERS = {"testing/embedded.py", "testing/stack.py"}


def test_picture_of_the_rooms_is_the_contract_and_names_all_rooms() -> None:
    contracts = tomllib.loads(text(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["name"] == "layers"]
    contract = [set(layer.split(" | ")) for layer in layers]
    picture = text(ROOT / "docs/explanation/architecture.md").split("```text\n")[1].split("```")[0]
    lines = [re.match(r"  (\w+(?:, \w+)*)", line) for line in picture.splitlines()[1:]]
    assert [set(line[1].split(", ")) for line in lines if line] == contract
    rooms = {path.stem for path in SOURCE.glob("*.py")} | {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert set.union(*contract) == rooms - {"__init__"}


@pytest.mark.parametrize(
    ("call", "module"), [("threading.Thread", "database/background.py"), ("psycopg.connect", "database/connections.py")]
)
def test_exclusive_task_is_done_by_one_module(call: str, module: str) -> None:
    name = call.rpartition(".")[2]
    calls = {
        path
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name
        if ast.unparse(node.func) == call
    }
    assert calls - SERVERS == {module}


def test_private_names_of_the_storage_are_in_one_room() -> None:
    private = re.compile(r"\b(?:storage|_normal_storage|_main)\._\w+|\._normal_storage\b")
    found = {name for name in TREES if private.search(text(SOURCE / name))}
    assert {name.partition("/")[0] for name in found - SERVERS} == {"storage"}


# -- keys of locks

KEYS = [value for name, value in vars(locks).items() if name.isupper() and isinstance(value, int)]


def test_keys_are_different_integers_of_postgresql() -> None:
    assert len(KEYS) > 1
    of_the_storage = {WARMER_LOCK_NS, STARTUP_DDL_LOCK_NS}
    assert len({*KEYS, *of_the_storage}) == len(KEYS) + len(of_the_storage)
    for key in KEYS:
        for zoid in (0, 2**31 - 1, 2**31, 2**63 - 1):
            assert all(0 <= part < 2**31 for part in locks.of_catalog(key, zoid))


def test_every_key_is_in_one_module() -> None:
    """No statement has a key of its own, except the functions for long jobs, and no module a number that looks like a key."""
    base = SOURCE / "database" / "sql" / "base.sql"
    [key] = {int(number) for number in re.findall(r"(?:lock\(|classid = )(\d+)", text(base))}
    assert key not in {locks.REBUILD, locks.COUNT_WORDS, locks.CHUNKS}
    for path in {*SOURCE.rglob("*.py"), *SOURCE.rglob("*.sql")} - {SOURCE / "sql" / "locks.py", base}:
        assert not re.search(r"advisory\w*lock\w*\s*\(\s*\d|0x7067", text(path), re.I), path


# -- SQL is not parsed

#: Attributes that are SQL, or parts of it.
SQL = {"sql", "quoted", "ddl", "definition", "expression", "order_by"}
#: Methods of strings and of regular expressions.
READING = {
    *("casefold", "count", "endswith", "find", "findall", "finditer", "fullmatch", "index", "lower", "lstrip", "match"),
    *("partition", "removeprefix", "removesuffix", "replace", "rfind", "rpartition", "rsplit", "rstrip", "search"),
    *("split", "startswith", "strip", "sub", "upper"),
}
#: Strings that occur only in SQL, searched for in a text.
WORDS = re.compile(r"%s|::|\b(?:AND|ASC|BETWEEN|DESC|FROM|LIMIT|OFFSET|OR|ORDER BY|SELECT|USING|WHERE)\b")


def is_sql(node: ast.expr) -> bool:
    """Return whether *node* is SQL, or a substring of SQL."""
    if isinstance(node, ast.Subscript):
        return is_sql(node.value)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "quote"
    return isinstance(node, ast.Attribute) and node.attr in SQL


def looks_for_sql(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and WORDS.search(node.value) is not None


def reads_sql(tree: ast.AST) -> Iterator[str]:
    """Yield the expressions in *tree* that read SQL."""
    for node in ast.walk(tree):
        reads = False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READING:
            reads = is_sql(node.func.value) or any(is_sql(arg) or looks_for_sql(arg) for arg in node.args)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            reads = is_sql(node.left) or looks_for_sql(node.left) or is_sql(node.comparators[0])
        elif isinstance(node, ast.Subscript):
            reads = is_sql(node.value)
        if reads:
            yield ast.unparse(node)


def test_no_module_reads_sql() -> None:
    found = [(name, read) for name, tree in TREES.items() for read in reads_sql(tree)]
    assert [read for read in found if "load_sql('base')" not in read[1]] == []


@pytest.mark.parametrize(
    "source",
    [
        *("_COSTLY.search(where.sql)", 'part.split(" AND ")', "quote(name) in asked", '" LIMIT " in text'),
    ],
)
def test_reading_of_sql_is_found(source: str) -> None:
    assert list(reads_sql(ast.parse(source)))


# -- long statements are in the folder ``sql`` of their room


#: Lines of a string in Python that may hold SQL, its quotes included.
MOST_LINES = 5
STATEMENT = re.compile(r"\b(?:ALTER|CASE|CREATE|DELETE|DROP|INSERT|SELECT|UPDATE|WITH) ")


def long_sql(tree: ast.Module) -> Iterator[int]:
    """Yield the line of each string with SQL of more than MOST_LINES lines in *tree*, concatenated ones included."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and id(node) not in docstrings:
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            strings = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            if lines > MOST_LINES and any(STATEMENT.search(part) for part in strings if isinstance(part, str)):
                yield node.lineno


def test_long_statements_are_in_files() -> None:
    found = [f"{path.relative_to(SOURCE)}:{line}" for path, tree in modules() for line in long_sql(tree)]
    assert found == []


def test_sql_file_begins_with_a_comment_is_read_in_its_room_and_shipped() -> None:
    """A wheel has all files of the package that git does not ignore."""
    files = set(SOURCE.rglob("*.sql"))
    assert files <= set(project_files())
    for path in files:
        room = path.parents[1]
        assert (text(path)[:3], path.parent.name) == ("-- ", "sql"), path
        assert read_sql(room.name, path.stem) == text(path)
        assert any(re.search(f"[\"']{path.stem}[\"']", text(module)) for module in room.glob("*.py")), path


def test_statement_has_no_comment_lines() -> None:
    assert "--" in read_sql("queue", "claim")
    assert read_statement("queue", "claim").startswith("WITH next AS MATERIALIZED ( SELECT kind, ")
