"""Commands and paths in the documentation: each chore, variable, module, command, option and file exists."""

from collections.abc import Iterator
from fnmatch import filter as matching
from itertools import chain
from pathlib import Path
from tests.unit.pages import commands
from tests.unit.pages import FENCE
from tests.unit.pages import project_files
from tests.unit.pages import SPAN
from tests.unit.sources import ROOT
from tests.unit.sources import text

import click
import importlib.util
import pytest
import re
import shlex


FILES = [path.relative_to(ROOT).as_posix() for path in project_files()]
FOLDERS = {parent.as_posix() for name in FILES for parent in Path(name).parents}
PAGES = [ROOT / name for name in FILES if name.endswith(".md")]
MAKEFILE = text(ROOT / "Makefile")
VARIABLES = {*re.findall(r"^([A-Z_]+) \?=", MAKEFILE, re.M), "PYTHON"}
CHORES = re.findall(r"^([a-z-]+):", MAKEFILE, re.M)
COMMANDS = dict(commands())
#: Chores of another project: the one created by cookieplone.
OTHERS = {("docs/how-to/volto.md", "build"), ("docs/how-to/volto.md", "install")}
SHELLS = ("", "console", "ini", "sh", "shell", "text", "yaml")
#: Text before a command: the beginning of a line, or of a command in it; a prompt; variables; a folder of executables.
BEFORE = r"(?:^|&& |; |-- |[|] )\s*(?:[$#] )?(?:[A-Z_]+=\S* )*(?:\S*/bin/)?"


def code(page: Path) -> Iterator[str]:
    """Yield the lines of blocks, and the spans in the text, of *page*."""
    for _indent, language, body in FENCE.findall(text(page)):
        if language in SHELLS:
            yield from re.sub(r"\s*\\\n\s*", " ", body).splitlines()
    yield from SPAN.findall(FENCE.sub("", text(page)))


def lines(page: Path, program: str) -> Iterator[tuple[list[str], str]]:
    """Yield for each command line with *program*: its arguments as words, and the whole line."""
    for line in code(page):
        found = re.search(rf"{BEFORE}{program}( [^&;|<>]*)?(?:[&;|<>]|$)", line)
        if found:
            yield shlex.split(found[1] or "", comments=True), line


def options(words: list[str]) -> list[str]:
    return [word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)]


def source_of(module: str) -> str:
    """Return the sources that *module* runs: its own, and those of its package."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return "\n".join(text(path) for path in Path(spec.origin).parent.rglob("*.py"))


def unknown_options(module: str, words: list[str]) -> list[str]:
    source = source_of(module)
    return [option for option in options(words) if f'"{option}"' not in source and f"/{option}" not in source]


def unknown_words(words: list[str]) -> Iterator[str]:
    """Yield the *words* after a make that the Makefile does not define."""
    for word in words:
        name, is_variable, value = word.partition("=")
        if not is_variable:
            if word not in CHORES and not word.startswith(".venv/.installed-"):
                yield word
        elif name not in VARIABLES:
            yield name
        elif name.endswith("_ARGS") and name != "PYTEST_ARGS":
            [module] = re.findall(rf"\$\(BIN\)/python (?:-m )?(\S+) .*\$\({name}\)", MAKEFILE)[:1]
            yield from unknown_options(module.removesuffix(".py").replace("/", "."), shlex.split(value))


def wrong_makes(page: Path) -> Iterator[str]:
    """Yield the words that are no chores, variables or options of them."""
    name = page.relative_to(ROOT).as_posix()
    for words, line in lines(page, "make"):
        yield from (f"{word}: {line}" for word in unknown_words(words) if (name, word) not in OTHERS)


def wrong_modules(page: Path) -> Iterator[str]:
    """Yield the modules that do not exist, and the options that ours do not have."""
    for words, line in lines(page, r"python\S* -m"):
        if importlib.util.find_spec(words[0]) is None:
            yield line
        elif words[0].partition(".")[0] in FOLDERS:
            yield from (f"{option}: {line}" for option in unknown_options(words[0], words[1:]))
    for words, line in lines(page, r"python\S* benchmarks/run_benchmarks\.py"):
        yield from (f"{option}: {line}" for option in unknown_options("benchmarks.run_benchmarks", words))


def wrong_commands(page: Path) -> Iterator[str]:
    """Yield the subcommands of pgcatalog that do not exist, and the options that they do not have."""
    for words, line in lines(page, "pgcatalog"):
        if not words or words[0].startswith("-"):
            continue
        command = COMMANDS.get(f"pgcatalog {words[0]}")
        if command is None:
            yield line
            continue
        known = {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
        yield from (f"{name}: {line}" for name in {*options(words)} - known - {"--help"})


def wrong_paths(page: Path) -> Iterator[str]:
    """Yield the paths that are not in the repository."""
    top = "|".join(re.escape(name) for name in sorted(FOLDERS) if "/" not in name and name != ".")
    for line in code(page):
        for word in re.findall(rf"(?<![\w./$-])(?:{top})/[\w./*-]+", line):
            if (name := word.rstrip("./")) not in FOLDERS and not matching(FILES, name):
                yield word


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_paths_of_a_page_exist(page: Path) -> None:
    found = chain(*(each(page) for each in (wrong_makes, wrong_modules, wrong_commands, wrong_paths)))
    assert list(found) == []
