"""Facts read from the package's sources."""

from pathlib import Path

import ast


ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "plone" / "pgcatalog"


def text(path: Path) -> str:
    return path.read_text("utf-8")


def modules() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(text(path))) for path in sorted(SOURCE.rglob("*.py"))]


def environment_variables() -> set[str]:
    """Return the variables that the sources read, or let click read."""
    names = set()
    for _path, tree in modules():
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            for argument in read_from_environment(node):
                if isinstance(argument, ast.Name):
                    names.add(constants[argument.id])
                elif isinstance(argument, ast.Constant):
                    names.add(argument.value)
    return names


def read_from_environment(node: ast.AST) -> list[ast.expr]:
    """Return the names of environment variables in *node*, as expressions."""
    if isinstance(node, ast.keyword) and node.arg in ("envvar", "variable"):
        return [node.value]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "environ":
        return [node.slice]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        called = node.func
        if called.attr in ("get", "pop", "setdefault", "getenv") and ast.unparse(called.value) in ("os.environ", "os"):
            return node.args[:1]
    return []


def between(page: Path, name: str) -> str:
    """Return the text of *page* between the marks *name*."""
    return text(page).partition(f"<!-- {name} -->\n\n")[2].partition(f"\n\n<!-- end of {name} -->")[0]
