"""Architecture: the documented picture, modules with exclusive tasks, keys of locks, and SQL that no module parses."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.sql import locks
from tests.unit.sources import SOURCE
from zodb_pgjsonb.cache_warmer import WARMER_LOCK_NS
from zodb_pgjsonb.startup_locks import STARTUP_DDL_LOCK_NS

import ast
import plone.pgcatalog
import pytest
import re
import tomllib


SOURCES = Path(plone.pgcatalog.__file__).parent
CHECKOUT = Path(__file__).parents[2]
#: Modules that start servers: for tests and the demo, never in a Zope process of a site.
SERVERS = {"testing/embedded.py", "testing/stack.py"}


def contract() -> list[set[str]]:
    """Return the layers of import-linter's contract, from the top."""
    configuration = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    [layers] = [c["layers"] for c in configuration["tool"]["importlinter"]["contracts"] if c["name"] == "layers"]
    return [set(layer.split(" | ")) for layer in layers]


def picture() -> list[set[str]]:
    """Return the layers of the picture in architecture.md."""
    text = (CHECKOUT / "docs/explanation/architecture.md").read_text("utf-8")
    block = text.split("```text\n")[1].split("```")[0]
    lines = [re.match(r"  (\w+(?:, \w+)*)", line) for line in block.splitlines()[1:]]
    return [set(line[1].split(", ")) for line in lines if line]


def test_the_picture_is_the_contract() -> None:
    assert picture() == contract()


def test_the_contract_names_all_rooms() -> None:
    rooms = {path.stem for path in SOURCES.glob("*.py")} | {path.parent.name for path in SOURCES.glob("*/__init__.py")}
    assert set.union(*contract()) == rooms - {"__init__"}


def calls_of(name: str) -> set[str]:
    """Return the modules that call *name*, such as ``threading.Thread``."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        source = path.read_text("utf-8")
        nodes = ast.walk(ast.parse(source)) if name.rpartition(".")[2] in source else ()
        if any(ast.unparse(node.func) == name for node in nodes if isinstance(node, ast.Call)):
            found.add(path.relative_to(SOURCES).as_posix())
    return found


@pytest.mark.parametrize(
    ("call", "module"), [("threading.Thread", "database/background.py"), ("psycopg.connect", "database/connections.py")]
)
def test_exclusive_task_is_done_by_one_module(call: str, module: str) -> None:
    assert calls_of(call) - SERVERS == {module}


def test_private_names_of_the_storage_are_in_one_room() -> None:
    private = re.compile(r"\b(?:storage|_normal_storage|_main)\._\w+|\._normal_storage\b")
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if private.search(path.read_text("utf-8"))
    }
    assert {Path(name).parts[0] for name in found - SERVERS} == {"storage"}


KEYS = {name: value for name, value in vars(locks).items() if name.isupper() and isinstance(value, int)}


def test_no_two_kinds_of_work_have_the_same_key() -> None:
    assert len(KEYS) > 1
    assert len({*KEYS.values(), WARMER_LOCK_NS, STARTUP_DDL_LOCK_NS}) == len(KEYS) + len(
        {WARMER_LOCK_NS, STARTUP_DDL_LOCK_NS}
    )


def test_keys_are_integers_of_postgresql() -> None:
    for key in KEYS.values():
        for zoid in (0, 2**31 - 1, 2**31, 2**63 - 1):
            assert all(0 <= part < 2**31 for part in locks.of_catalog(key, zoid))


def test_every_key_is_in_one_module() -> None:
    """No statement has a key of its own, except the functions for long jobs, and no module a number that looks like a key."""
    base = SOURCE / "database" / "sql" / "base.sql"
    [key] = {int(number) for number in re.findall(r"(?:lock\(|classid = )(\d+)", base.read_text("utf-8"))}
    assert key not in {locks.REBUILD, locks.COUNT_WORDS, locks.CHUNKS}
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.sql")]:
        if path not in (SOURCE / "sql" / "locks.py", base):
            text = path.read_text("utf-8")
            assert not re.search(r"advisory\w*lock\w*\s*\(\s*\d", text), path
            assert "0x7067" not in text.lower(), path


PACKAGE = Path(__file__).parents[2] / "src" / "plone" / "pgcatalog"
MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
#: Module -> the texts to which it applies regular expressions.
REGULAR_EXPRESSIONS = {
    "cli/reports.py": "periods",
    "classic/suggestions.py": "search texts",
    "classic/page_facets.py": "months in addresses",
    "core/references.py": "texts and blocks, for links in them",
    "testing/host.py": "names of folders",
    "database/expected.py": "our own base.sql, for the names that it makes",
    "database/prepared.py": "placeholders, to number them: a part of rendering",
    "discovery/highlight.py": "texts",
    "discovery/suggest.py": "search texts",
    "fulltext/lexicon.py": "words",
    "fulltext/text_index.py": "texts that were HTML",
    "fulltext/tsquery.py": "search texts",
    "fulltext/tuning.py": "settings",
    "fulltext/typed.py": "search texts",
    "indexes/keys.py": "values",
    "meaning/text.py": "texts",
    "meaning/question.py": "what visitors type",
    "observe/plan.py": "plans as PostgreSQL writes them, for people to read",
    "observe/searches.py": "search texts",
    "request.py": "messages",
    "results/brain.py": "paths",
    "sql/column.py": "names of indexes",
    "sql/values.py": "texts",
    "zmi/page.py": "names of pages",
    "storage/records.py": "pickles, for values that the codec changes",
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


@pytest.mark.parametrize("name", MODULES)
def test_no_module_reads_sql(name: str) -> None:
    found = list(reads_sql(MODULES[name].read_text("utf-8")))
    assert [read for read in found if "load_sql('base')" not in read] == []


def test_regular_expressions_are_for_other_texts() -> None:
    imports = re.compile(r"^\s*(?:from re import |import .*\bre\b(?!\.))", re.MULTILINE)
    found = {name for name, path in MODULES.items() if imports.search(path.read_text("utf-8"))}
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
def test_check_finds_former_violations(source: str) -> None:
    assert list(reads_sql(source))
