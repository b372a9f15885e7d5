"""What stands where: the picture in the documentation, and who alone may do certain things."""

from pathlib import Path

import ast
import plone.pgcatalog
import pytest
import re
import tomllib


SOURCES = Path(plone.pgcatalog.__file__).parent
CHECKOUT = Path(__file__).parents[2]
#: What starts servers: for tests and the demo, never in a Zope process of a site.
SERVERS = {"testing/embedded.py"}


def contract() -> list[set[str]]:
    """Return the layers of import-linter's contract, from the top."""
    configuration = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    [layers] = [c["layers"] for c in configuration["tool"]["importlinter"]["contracts"] if c["name"] == "layers"]
    return [set(layer.split(" | ")) for layer in layers]


def picture() -> list[set[str]]:
    """Return the layers of the picture in architecture.md."""
    text = (CHECKOUT / "docs/explanation/architecture.md").read_text()
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
        calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if any(ast.unparse(call) == name for call in calls):
            found.add(path.relative_to(SOURCES).as_posix())
    return found


@pytest.mark.parametrize(
    ("call", "module"), [("threading.Thread", "database/background.py"), ("psycopg.connect", "database/connections.py")]
)
def test_one_module_does_it(call: str, module: str) -> None:
    assert calls_of(call) - SERVERS == {module}


def test_private_names_of_the_storage_are_in_one_module() -> None:
    private = re.compile(r"\b(?:storage|_normal_storage|_main)\._\w+|\._normal_storage\b")
    found = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py") if private.search(path.read_text())}
    assert found - SERVERS == {"storage.py"}
