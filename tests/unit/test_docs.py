"""The documentation is complete, its links, commands and paths are valid, and its examples run."""

from collections.abc import Callable
from collections.abc import Iterator
from fnmatch import filter as matching
from importlib.metadata import EntryPoint
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
from tests.unit.sources import environment_variables
from tests.unit.sources import modules
from tests.unit.sources import project_files
from tests.unit.sources import ROOT
from tests.unit.sources import SOURCE
from tests.unit.sources import text
from types import SimpleNamespace
from typing import Any
from zope.component import getGlobalSiteManager

import ast
import click
import json
import psycopg
import pytest
import re
import shlex
import tomllib


DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
#: Built by ``make docs`` from stored results, and not in the repository.
BUILT = REFERENCE / "benchmark-results.md"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts and p != BUILT)
INDEX_TYPE = DOCS / "how-to" / "index-type.md"

FENCE = re.compile(r"^( *)```\{?([\w-]*)\}?[^`\n]*\n(.*?)^\1```$", re.M | re.S)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)


def commands() -> list[tuple[str, click.Command]]:
    """Return (name, command) of the console scripts of the package, and of their subcommands."""
    scripts = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]["scripts"]
    found: list[tuple[str, click.Command]] = []
    for script, target in scripts.items():
        command = EntryPoint(script, target, "console_scripts").load()
        if not isinstance(command, click.Group):
            found.append((script, command))
            continue
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            found.append((f"{script} {name}", subcommand))
    return found


def blocks(path: Path, language: str) -> list[str]:
    """Return the code blocks of *path* in *language*, without their indentation."""
    return [
        "\n".join(line.removeprefix(indent) for line in body.splitlines())
        for indent, name, body in FENCE.findall(text(path))
        if name == language
    ]


def section(page: Path, heading: str) -> str:
    """Return the part of *page* below *heading*; raises ValueError without it."""
    _, rest = text(page).split(f"\n## {heading}\n")
    return rest.partition("\n## ")[0]


# -- complete


def test_every_environment_variable_is_in_the_reference() -> None:
    assert set(re.findall(r"^\| `(\w+)`", text(REFERENCE / "environment.md"), re.M)) == environment_variables()
    assert {"PGCATALOG_DSN", "PGCATALOG_PG_BIN"} <= environment_variables()


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    lines = re.findall(r"^\| `(plone\.[\w.]+)`(.*)$", section(REFERENCE / "environment.md", "Settings"), re.M)
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


def test_every_table_is_in_the_reference_and_the_picture() -> None:
    tables, page = created_tables(), REFERENCE / "tables.md"
    assert {"pgcatalog_state", "pgcatalog_retired", "object_state.idx"} <= set(tables)
    for table, columns in tables.items():
        # The relation of a catalog is named after its tool.
        found = section(page, table if table != "{relation}" else "pgcatalog_`<hex oid>`")
        assert [column for column in columns if f"| `{column}` |" not in found] == [], table
    picture = text(page).partition("```text\n")[2].partition("```")[0]
    assert set(TABLES) <= set(re.findall(r"\w+", picture))


def test_every_index_type_and_interface_is_in_the_reference() -> None:
    rows = re.findall(r"^\| ((?:\w+Index(?:, )?)+) \|", text(REFERENCE / "tables.md"), re.M)
    types = {*BUILT_IN, ZCTextIndexTranslator.meta_type}
    assert {name for row in rows for name in row.split(", ")} == types
    own = [name for name, each in vars(interfaces).items() if getattr(each, "__module__", "") == interfaces.__name__]
    assert len(own) >= 3
    assert [name for name in (*types, *own) if name not in text(REFERENCE / "python-api.md")] == []


def test_every_marker_is_in_the_reference_with_an_example() -> None:
    page = text(REFERENCE / "idx-markers.md")
    assert set(re.findall(r"`(@\w+)`", page)) == set(codec._decoders)
    examples = [json.loads(example) for example in re.findall(r"`(\{\"@.*?\})` \|", page)]
    assert len(examples) >= 18
    assert [codec.encode(codec.decode(example)) for example in examples] == examples


def test_every_logger_and_uncalled_method_is_in_the_reference() -> None:
    calls = re.compile(r"\blogger\.(?:debug|info|warning|error|exception)\(")
    logging = [path.relative_to(ROOT / "src").with_suffix("") for path, _ in modules() if calls.search(text(path))]
    names = [".".join(path.parts).removesuffix(".__init__") for path in logging]
    assert [name for name in names if f"| `{name}` |" not in text(REFERENCE / "logging.md")] == []
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", text(REFERENCE / "patches.md"), re.M)
    found = {(cls, name): reason for cls, names, reason in rows for name in re.findall(r"`(\w+)`", names)}
    assert found == {(cls.__name__, name): why for cls, reasons in NOT_CALLED.items() for name, why in reasons.items()}


def test_every_chore_and_command_is_in_the_reference() -> None:
    chores = set(re.findall(r"^([a-z-]+):.*## ", text(ROOT / "Makefile"), re.M))
    documented = set(re.findall(r"^\| `make ([a-z-]+)`", text(ROOT / "CONTRIBUTING.md"), re.M))
    assert documented == chores - {"help"}
    page = REFERENCE / "commands.md"
    assert set(re.findall(r"^## (.+)$", text(page), re.M)) == {name for name, _command in commands()}
    for name, command in commands():
        options = {o.opts[0] for o in command.params if isinstance(o, click.Option) and not o.hidden}
        assert set(re.findall(r"^\| `(--[\w-]+)`", section(page, name), re.M)) == options, name


def test_every_test_of_a_fault_exists() -> None:
    tests = "\n".join(text(path) for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)` \|$", text(DOCS / "explanation" / "faults.md"), re.M)
    assert len(named) >= 25
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_deviations_have_unique_names_and_reasons() -> None:
    sections = re.split(r"^### ", text(DOCS / "explanation" / "deviations.md"), flags=re.M)[1:]
    names = [section.partition("\n")[0] for section in sections]
    assert len(names) == len(set(names)) > 30
    assert [name for name in names if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name)] == []
    assert [n for n, s in zip(names, sections, strict=True) if "\n*Why:* " not in s] == []


def test_guide_names_the_version_of_volto_that_is_built() -> None:
    built = json.loads(text(ROOT / "frontend" / "package.json"))["dependencies"]["@plone/volto"]
    assert set(re.findall(r"Volto (\d[\d.]*\d)", text(DOCS / "how-to" / "volto.md"))) == {built}


# -- links


def anchors(path: Path) -> set[str]:
    """Return the headings of *path* as MyST and GitHub name them; a label of MyST would be a broken link on GitHub."""
    headings = HEADING.findall(FENCE.sub("", text(path)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_have_a_target() -> None:
    """In the repository and in the built documentation, which has the files below ``docs`` only."""
    broken = []
    for path in [*ROOT.glob("*.md"), *(ROOT / "news").glob("*.md"), *PAGES]:
        links = LINK.findall(FENCE.sub("", text(path))) + re.findall(r"^```\{literalinclude\} (.+)$", text(path), re.M)
        for link in links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            is_built = target.is_relative_to(DOCS) or not path.is_relative_to(DOCS)
            if target == BUILT or not target.is_file() or not is_built or (anchor and anchor not in anchors(target)):
                broken.append((path.name, link))
    assert broken == []


# -- examples


def test_python_examples_are_python() -> None:
    for path in PAGES:
        for block in blocks(path, "python"):
            ast.parse(block, path.name)


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


# -- commands and paths: each chore, variable, module, command, option and file exists


FILES = [path.relative_to(ROOT).as_posix() for path in project_files()]
FOLDERS = {parent.as_posix() for name in FILES for parent in Path(name).parents}
MAKEFILE = text(ROOT / "Makefile")
VARIABLES = {*re.findall(r"^([A-Z_]+) \?=", MAKEFILE, re.M), "PYTHON"}
CHORES = re.findall(r"^([a-z-]+):", MAKEFILE, re.M)
COMMANDS = dict(commands())
#: Chores of another project: the one created by cookieplone.
OTHERS = {("docs/how-to/volto.md", "build"), ("docs/how-to/volto.md", "install")}
SHELLS = ("", "console", "ini", "sh", "shell", "text", "yaml")
#: Text before a command: the beginning of a line, or of a command in it; a prompt; variables; a folder of executables.
BEFORE = r"(?:^|&& |; |-- |[|] )\s*(?:[$#] )?(?:[A-Z_]+=\S* )*(?:\S*/bin/)?"


def code(page: str) -> Iterator[str]:
    """Yield the lines of blocks, and the spans in the text, of *page*."""
    for _indent, language, body in FENCE.findall(text(ROOT / page)):
        if language in SHELLS:
            yield from re.sub(r"\s*\\\n\s*", " ", body).splitlines()
    yield from SPAN.findall(FENCE.sub("", text(ROOT / page)))


def lines(page: str, program: str) -> Iterator[tuple[list[str], str]]:
    """Yield for each command line with *program*: its arguments as words, and the whole line."""
    for line in code(page):
        found = re.search(rf"{BEFORE}{program}( [^&;|<>]*)?(?:[&;|<>]|$)", line)
        if found:
            yield shlex.split(found[1] or "", comments=True), line


def wrong_makes(page: str) -> Iterator[str]:
    """Yield the words that are no chores or variables of the Makefile."""
    for words, line in lines(page, "make"):
        for word in words:
            name, is_variable, _ = word.partition("=")
            known = VARIABLES if is_variable else CHORES
            if name not in known and not name.startswith(".venv/.installed-") and (page, word) not in OTHERS:
                yield f"{word}: {line}"


def wrong_commands(page: str) -> Iterator[str]:
    """Yield the lines with subcommands of pgcatalog that do not exist, or with options that they do not have."""
    for words, line in lines(page, "pgcatalog"):
        if words and not words[0].startswith("-"):
            command = COMMANDS.get(f"pgcatalog {words[0]}")
            known = {"--help", *(name for each in command.params for name in each.opts)} if command else set()
            options = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
            if command is None or not options <= known:
                yield line


def wrong_paths(page: str) -> Iterator[str]:
    """Yield the paths that are not in the repository."""
    top = "|".join(re.escape(name) for name in sorted(FOLDERS) if "/" not in name and name != ".")
    for line in code(page):
        for word in re.findall(rf"(?<![\w./$-])(?:{top})/[\w./*-]+", line):
            if (name := word.rstrip("./")) not in FOLDERS and not matching(FILES, name):
                yield word


@pytest.mark.parametrize("wrong", [wrong_makes, wrong_commands, wrong_paths])
def test_commands_and_paths_of_each_page_exist(wrong: Callable[[str], Iterator[str]]) -> None:
    assert [(page, found) for page in FILES if page.endswith(".md") for found in wrong(page)] == []
