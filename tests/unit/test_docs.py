"""The documentation is complete, its links are valid, and its examples run."""

from pathlib import Path
from plone.pgcatalog import interfaces
from plone.pgcatalog.compat.zcatalog import NOT_CALLED
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.database.expected import TABLES
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.registry import BUILT_IN
from plone.pgcatalog.indexes.registry import translator_class
from plone.pgcatalog.indexing import codec
from plone.pgcatalog.settings import SETTINGS
from tests.unit.pages import commands
from tests.unit.pages import FENCE
from tests.unit.sources import environment_variables
from tests.unit.sources import ROOT
from tests.unit.sources import SOURCE
from tests.unit.sources import text
from types import SimpleNamespace
from typing import Any
from zope.component import getGlobalSiteManager

import ast
import click
import psycopg
import pytest
import re


DOCS = ROOT / "docs"
#: Built by ``make docs`` from stored results, and not in the repository.
BUILT = DOCS / "reference" / "benchmark-results.md"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts and p != BUILT)
DEVIATIONS = DOCS / "explanation" / "deviations.md"
INDEX_TYPE = DOCS / "how-to" / "index-type.md"

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)


def blocks(path: Path, language: str) -> list[str]:
    """Return the code blocks of *path* in *language*, without their indentation."""
    return [
        "\n".join(line.removeprefix(indent) for line in body.splitlines())
        for indent, name, body in FENCE.findall(text(path))
        if name == language
    ]


# -- complete


def test_every_environment_variable_is_in_the_reference() -> None:
    variables = environment_variables()
    assert {"PGCATALOG_DSN", "PGCATALOG_PG_BIN"} <= variables
    page = text(DOCS / "reference" / "environment.md")
    assert set(re.findall(r"^\| `(\w+)`", page, re.M)) == variables


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    page = text(DOCS / "reference" / "environment.md").partition("\n## Settings\n")[2]
    lines = re.findall(r"^\| `(plone\.[\w.]+)`(.*)$", page, re.M)
    rows = {name: [cell.strip(" `") for cell in rest.split("|")] for name, rest in lines}
    assert set(rows) == {f"{PREFIX}.{name}" for name in SETTINGS}
    for name, setting in SETTINGS.items():
        default = "empty" if setting.default in ("", ()) else str(setting.default)
        assert {default, setting.variable or default, setting.read_by} <= set(rows[f"{PREFIX}.{name}"]), name


def created_tables() -> dict[str, list[str]]:
    """Return the tables that ``database/sql`` creates, each with its columns."""
    tables: dict[str, list[str]] = {}
    for path in sorted((SOURCE / "database" / "sql").glob("*.sql")):
        statements = re.sub(r"--.*", "", text(path))
        for name, body in re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\S+) \((.*?)^\)", statements, re.M | re.S):
            tables[name] = re.findall(r"^ +([a-z_]+) +[A-Z]", body, re.M)
        for name, column in re.findall(r"ALTER TABLE (\S+) ADD COLUMN (?:IF NOT EXISTS )?(\S+)", statements):
            if name in tables:
                tables[name].append(column)
            else:  # a table of the storage's
                tables[f"{name}.{column}"] = []
    return tables


def test_every_table_is_in_the_reference() -> None:
    tables = created_tables()
    assert {"pgcatalog_state", "pgcatalog_retired", "object_state.idx"} <= set(tables)
    page = text(DOCS / "reference" / "tables.md")
    for table, columns in tables.items():
        # The relation of a catalog is named after its tool.
        heading = table if table != "{relation}" else "pgcatalog_`<hex oid>`"
        assert f"\n## {heading}\n" in page
        section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        assert [c for c in columns if f"| `{c}` |" not in section] == []


def test_every_shared_table_is_in_the_picture() -> None:
    picture = text(DOCS / "reference" / "tables.md").partition("```text\n")[2].partition("```")[0]
    assert [name for name in TABLES if not re.search(rf"\b{name}\b", picture)] == []


def test_every_index_type_is_in_the_reference() -> None:
    table = text(DOCS / "reference" / "tables.md")
    rows = re.findall(r"^\| ((?:\w+Index(?:, )?)+) \|", table, re.M)
    names = {*BUILT_IN, ZCTextIndexTranslator.meta_type}
    assert {name for row in rows for name in row.split(", ")} == names
    assert [n for n in names if n not in text(DOCS / "reference/python-api.md")] == []


def test_every_marker_is_in_the_reference_with_an_example() -> None:
    page = text(DOCS / "reference" / "idx-markers.md")
    assert set(re.findall(r"`(@\w+)`", page)) == set(codec._decoders)
    examples = re.findall(r"`(\{\"@.*?\})` \|", page)
    assert len(examples) >= 18
    for example in examples:
        data = ast.literal_eval(example.replace("null", "None").replace("false", "False").replace("true", "True"))
        assert codec.encode(codec.decode(data)) == data


def test_every_interface_is_in_the_reference() -> None:
    reference = "\n".join(text(path) for path in (DOCS / "reference").glob("*.md"))
    own = [name for name, each in vars(interfaces).items() if getattr(each, "__module__", "") == interfaces.__name__]
    assert len(own) >= 3
    assert [name for name in own if name not in reference] == []


def test_every_logger_is_in_the_reference() -> None:
    page = text(DOCS / "reference" / "logging.md")
    calls = re.compile(r"\blogger\.(?:debug|info|warning|error|exception)\(")
    logging = [
        path.relative_to(ROOT / "src").with_suffix("") for path in SOURCE.rglob("*.py") if calls.search(text(path))
    ]
    names = [".".join(path.parts).removesuffix(".__init__") for path in logging]
    assert [name for name in names if f"| `{name}` |" not in page] == []


def test_every_patchable_name_that_is_not_called_is_in_the_reference() -> None:
    page = text(DOCS / "reference" / "patches.md")
    rows = []
    for cls, reasons in NOT_CALLED.items():
        for reason in sorted(set(reasons.values())):
            names = ", ".join(f"`{name}`" for name in sorted(reasons) if reasons[name] == reason)
            rows.append(f"| `{cls.__name__}` | {names} | {reason} |")
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows


def test_every_chore_is_where_contributors_look() -> None:
    chores = set(re.findall(r"^([a-z-]+):.*## ", text(ROOT / "Makefile"), re.M))
    documented = set(re.findall(r"^\| `make ([a-z-]+)`", text(ROOT / "CONTRIBUTING.md"), re.M))
    assert documented == chores - {"help"}


def test_every_command_is_in_the_reference() -> None:
    page = text(DOCS / "reference" / "commands.md")
    assert set(re.findall(r"^## (.+)$", page, re.M)) == {name for name, _command in commands()}
    for name, command in commands():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        options = {o.opts[0] for o in command.params if isinstance(o, click.Option) and not o.hidden}
        assert set(re.findall(r"^\| `(--[\w-]+)`", section, re.M)) == options


def test_every_test_of_a_fault_exists() -> None:
    tests = "\n".join(text(path) for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)` \|$", text(DOCS / "explanation" / "faults.md"), re.M)
    assert len(named) >= 25
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_deviations_have_unique_names_and_reasons() -> None:
    sections = re.split(r"^### ", text(DEVIATIONS), flags=re.M)[1:]
    names = [section.partition("\n")[0] for section in sections]
    assert len(names) == len(set(names)) > 30
    assert [name for name in names if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name)] == []
    assert [n for n, s in zip(names, sections, strict=True) if "\n*Why:* " not in s] == []


# -- links


def anchors(path: Path) -> set[str]:
    """Return the headings of *path* as MyST and GitHub name them; a label of MyST would be a broken link on GitHub."""
    headings = HEADING.findall(FENCE.sub("", text(path)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "path", [*ROOT.glob("*.md"), *(ROOT / "news").glob("*.md"), *PAGES], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_links_have_a_target(path: Path) -> None:
    """In the repository and in the built documentation, which has the files below ``docs`` only."""
    broken = []
    links = LINK.findall(FENCE.sub("", text(path))) + re.findall(r"^```\{literalinclude\} (.+)$", text(path), re.M)
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        is_built = target.is_relative_to(DOCS) or not path.is_relative_to(DOCS)
        if target == BUILT or not target.is_file() or not is_built or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


# -- examples


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.relative_to(DOCS).as_posix())
def test_python_examples_are_python(path: Path) -> None:
    for block in blocks(path, "python"):
        ast.parse(block)


def test_example_of_an_index_type_is_found_and_answers_in_postgresql(connection: psycopg.Connection[Any]) -> None:
    example: dict[str, Any] = {"__name__": "example"}
    for block in blocks(INDEX_TYPE, "python"):
        exec(compile(block, INDEX_TYPE.name, "exec"), example)
    assert example["CaselessIndexTranslator"](SimpleNamespace(id="color"), "color").meta_type == "CaselessIndex"
    cls = example["PriceIndexTranslator"]
    registry = getGlobalSiteManager()
    registry.registerUtility(cls, interfaces.IPGIndexTranslator, name="PriceIndex")
    try:
        assert translator_class("PriceIndex") is cls
    finally:
        registry.unregisterUtility(cls, interfaces.IPGIndexTranslator, name="PriceIndex")
    # The ZCML in the page is equivalent.
    (zcml,) = blocks(INDEX_TYPE, "xml")
    assert f"{interfaces.__name__}.IPGIndexTranslator" in zcml
    assert 'name="PriceIndex"' in zcml

    translator = cls(example["PriceIndex"]("price"), "price")
    reports: list[str] = []
    columns = ", ".join(column.ddl for column in translator.columns())
    connection.execute(f"CREATE TABLE example (rid serial, {columns})")
    for index in translator.sql_indexes():
        connection.execute(f"CREATE INDEX ON example {index.definition}")
    for value in (10, "9.5", 100, None, "cheap"):
        found = translator.extract(SimpleNamespace(price=value), reports.append)
        connection.execute("INSERT INTO example (price) VALUES (%s)", found or (None,))
    assert reports == ["'cheap' is no price and is left out"]
    for query, rids in (
        (10, [1]),
        ([100, "9.50"], [2, 3]),
        ({"query": 10, "range": "max"}, [2, 1]),
        ({"query": (9, 11), "range": "min:max"}, [2, 1]),
        ({"not": 10}, [2, 3, 4, 5]),
        ("cheap", []),
    ):
        where = all_of([translator.where({"price": query})])
        order = ", ".join(translator.order_by())
        rows = connection.execute(f"SELECT rid FROM example WHERE {where.sql} ORDER BY {order}", where.params)
        assert [rid for (rid,) in rows] == rids


def test_no_page_installs_the_other_project_of_this_name() -> None:
    """On the Python Package Index the name belongs to another project."""
    install = re.compile(r"(?:pip|uv)[\w -]* install [^`\n]*plone\.pgcatalog")
    pages = [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found = [(page.name, line) for page in pages for line in text(page).splitlines() if install.search(line)]
    assert [(name, line) for name, line in found if "/path/to/" not in line and name != "decisions.md"] == []
