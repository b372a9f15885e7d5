"""Writes ``docs/reference/replaced.md``: the parts of Plone, Zope and the storage that this package replaces.

    PYTHONPATH=. .venv/bin/python scripts/replaced.py

The code is the source: methods are found by the classes that they override, views and subscribers by the ZCML, patches by
the assignment in the source.  The replacement is described by the first sentence of its docstring; ``WHY`` describes patches
and objects without a docstring, and a test reports missing descriptions.
"""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.catalog import FORMER_PAGES
from plone.pgcatalog.catalog import OWN_PAGES
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.catalog import WEB_ACTIONS
from plone.pgcatalog.catalog import WEB_FORMS
from plone.pgcatalog.compat import proxies
from plone.pgcatalog.compat import proxy_types
from Products.ZCatalog.Catalog import Catalog
from typing import Any
from xml.etree import ElementTree

import ast
import re


ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "plone" / "pgcatalog"
PAGE = ROOT / "docs" / "reference" / "replaced.md"
MARKS = ("<!-- what we replace: scripts/replaced.py -->", "<!-- end of what we replace -->")
#: Modules in which each attribute that is set on another object belongs to the storage.
OF_THE_STORAGE = ("storage/__init__.py", "storage/records.py", "storage/snapshots.py", "reader.py")
ZCML_KINDS = ("page", "service", "subscriber", "adapter", "utility", "viewlet", "importStep")

#: Name in the tables below -> description, for objects whose docstring has none.
WHY = {
    # the tool
    "filtered_manage_options": "tabs in the language of the user",
    "_counter": "the database counts changes, each in its transaction",
    "manage_options": "tabs for the pages of this package",
    "meta_type": "the class has its own name",
    # ZCatalog's internals
    "addIndex": "an index is a column of the table, created by the commit",
    "delIndex": "the commit empties the column",
    "addColumn": "a metadata column is a key of the JSON in the object's row",
    "delColumn": "the key is no longer read",
    "catalogObject": "values are extracted at once, and written by the commit of the object",
    "uncatalogObject": "the commit deletes the row",
    "clear": "the commit creates a new, empty table",
    "searchResults": "the database searches",
    "search": "the database searches",
    "make_query": "indexes that rewrite queries do so once per query",
    "useBrains": "the tool stores the class",
    "getIndex": "index objects are created from the tool's settings",
    "updateMetadata": "metadata is written with the row",
    "instantiate": "brains read their row from the database",
    "__getitem__": "brains read their row from the database",
    "__len__": "the database counts",
    "_length": "the database counts",
    "_v_result_class": "brains have the tool's columns",
    "data": "metadata by record id, read from the database",
    "indexes": "index objects by name, created from the tool's settings",
    "names": "the tool's metadata columns",
    "paths": "paths by record id, read from the database",
    "schema": "the tool's metadata columns, by name",
    "uids": "record ids by path, read from the database",
    # control panels in plone.restapi and Volto
    "SettingsConfiglet": "The panel *PostgreSQL Catalog* over REST",
    "SearchConfiglet": "The panel *Search Tuning* over REST",
    "SearchPageConfiglet": "The panel *Search Page* over REST",
    # patches: the place, as written in the source
    "TransformTool._findPath": "files are read after the save: indexers find no transform for a file with a pending job",
    "PGJsonbStorage.pack": "a pack has one snapshot, and removes no object to which a concurrent transaction refers",
    "zodb_json_codec.decode_zodb_record_for_pg_json": "values that the codec would change are stored in another form",
    "zodb_json_codec.encode_zodb_record": "a date that was stored in `pytz.utc` is loaded in `pytz.utc`",
    "storage.new_instance": "each ZODB connection gets the patches of `instance`",
    "storage._ts": "the next transaction gets a later id than those of machines with a fast clock",
    "instance.new_oid": "oids are allocated in blocks, not one per message",
    "setattr(instance)": "Zope repeats a request whose read loses its connection or is cancelled by a standby",
    "instance.poll_invalidations": "one message instead of three replaces a snapshot; a request begins one snapshot",
    "instance.sync": "notes whether `begin()` causes the next poll",
    "instance.afterCompletion": "the snapshot of a request lasts until its connection is closed",
    "instance.snapshots": "the snapshots of the connection: their state and messages",
    "WSGIPublisher.load_app": "a connection that the publisher opens has the snapshot of its request; "
    "a request that has lost its connection ends without the registry of its site",
    "instance.tpc_finish": "the cache of the process gets the objects that a commit has stored",
    "instance.tryToResolveConflict": "a deleted state is a conflict, without a traceback in the log",
    "instance.release": "a connection returns to the pool only after all its results are read",
    "instance._polled_tid": "the first poll of a connection starts from the transaction of the shared cache",
    "instance._in_read_txn": "a message of this package has begun the snapshot",
    "pool.connection_class": "through a pooler, connections prepare no statements that the pooler would lose",
    "pool.kwargs": "the same, for future connections",
    "setattr(each)": "the same, for open connections",
    "connection.isolation_level": "the snapshot of a pack, on a connection of its own",
    "connection.autocommit": "the same",
    "connection.commit": "before its commit, a pack checks for new references to the objects it removes",
    "setattr(self._storage)": "the proxy of the storage in a pack passes attributes on to the storage",
    "setattr(upstream)": "while a read-only storage is opened, functions that would write are replaced",
    "setattr(ReadOnlyInstance)": "a read-only storage refuses to write; a class of this package",
    "setattr(ReadOnlyStorage)": "the same",
}


def first_sentence(text: str | None) -> str:
    """Return the first sentence of a docstring on one line, in Markdown."""
    paragraph = " ".join((text or "").strip().split("\n\n")[0].split())
    sentence = re.split(r"(?<=[a-z)`])\.(?:\s|$)|: see |; see ", paragraph)[0]
    return sentence.replace("``", "`").replace("|", "\\|").rstrip(".")


def classes_in(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse((PACKAGE / module).read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def methods_of(node: ast.ClassDef) -> dict[str, str]:
    """Return name -> docstring of the functions of a class, read from its source."""
    found = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    return {each.name: ast.get_docstring(each) or "" for each in found}


def tool_rows() -> Iterator[tuple[str, str, str]]:
    """Yield (name, inherited class, description) of the tool's overrides."""
    docs = methods_of(classes_in("catalog.py")["PlonePGCatalogTool"])
    grouped = {
        **dict.fromkeys(WEB_ACTIONS, "over the web only by POST and with a token"),
        **dict.fromkeys(WEB_FORMS, "its form sends a token"),
        **dict.fromkeys((*OWN_PAGES, *FORMER_PAGES), "a page of this package, unless an add-on has patched it"),
    }
    for name in sorted(vars(PlonePGCatalogTool)):
        base = next((base for base in PlonePGCatalogTool.__mro__[1:] if name in vars(base)), None)
        # If CMFCore's tools are initialised, there is an icon, too.
        by_zope = name.endswith("__roles__") or name.startswith("__") or name in ("meta_types", "icon")
        if base is not None and base is not object and not by_zope:
            doc = docs.get(name) or getattr(vars(PlonePGCatalogTool)[name], "__doc__", "")
            yield name, base.__name__, WHY.get(name) or grouped.get(name) or first_sentence(doc)


def inside_rows() -> Iterator[tuple[str, str]]:
    """Yield (name, description) of the overrides of ``_catalog``."""
    for name, doc in sorted(methods_of(classes_in("compat/catalog.py")["_CatalogCompat"]).items()):
        if name in ("__init__", "__of__", "__parent__") or not (hasattr(Catalog, name) or name in vars(Catalog())):
            continue
        yield name, WHY.get(name) or first_sentence(doc)


def index_rows() -> Iterator[tuple[str, str]]:
    """Yield (class of proxies, names of its attributes) of index objects."""
    for module in (proxies, proxy_types):
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, proxies.ProxyBase) and cls.__module__ == module.__name__:
                names = [
                    name for name in vars(cls) if not name.startswith(("__", "_pg_")) and not name.endswith("__roles__")
                ]
                if names and first_sentence(cls.__doc__):
                    yield first_sentence(cls.__doc__), ", ".join(f"`{name}`" for name in sorted(names))


def zcml_rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield (kind, name, for, description) of the registrations in ZCML."""
    for path in sorted(PACKAGE.rglob("*.zcml")):
        for node in ElementTree.parse(path).iter():
            kind = node.tag.rpartition("}")[2]
            if kind not in ZCML_KINDS or path.name == "upgrades.zcml":
                continue
            target = next(node.get(key, "") for key in ("handler", "factory", "class", "component") if node.get(key))
            wanted = " ".join((node.get("for") or "").split())
            last = target.rpartition(".")[2]
            yield kind, node.get("name") or last, wanted, WHY.get(last) or first_sentence(doc_of(path.parent, target))


def doc_of(folder: Path, dotted: str) -> str | None:
    """Return the docstring of the object *dotted*, as ZCML in *folder* names it; None if there is none."""
    levels = len(dotted) - len(dotted.lstrip("."))
    base = folder
    for _ in range(levels - 1):
        base = base.parent
    *parts, name = dotted.lstrip(".").split(".")
    tree = ast.parse(base.joinpath(*parts).with_suffix(".py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return ast.get_docstring(node)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            called = node.value.func if isinstance(node.value, ast.Call) else node.value
            return doc_of(folder, "." * levels + ".".join([*parts, ast.unparse(called)]))
    return None


def patch_rows() -> Iterator[tuple[str, str, str]]:
    """Yield (place, module, description) of the attributes that are set on classes and objects of other packages."""
    found: dict[tuple[str, str], None] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        foreign = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("plone.pgcatalog")
            for alias in node.names
        }
        for node in sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0)):
            for owner, place in set_places(node):
                if owner in foreign or (module in OF_THE_STORAGE and owner != "self"):
                    found[place, module] = None
    for place, module in sorted(found, key=lambda each: each[1]):
        yield place, module, WHY.get(place, "")


def set_places(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (owner, place) of the attributes of other objects that the statement *node* sets."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                    yield ast.unparse(each.value), ast.unparse(each)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
        owner = ast.unparse(node.args[0])
        yield owner, f"setattr({owner})"


def table(*heads: str, rows: Iterator[tuple[Any, ...]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def page() -> str:
    """Return the generated part of the page."""
    return "\n\n".join(
        [
            "## The catalog tool",
            "`portal_catalog` is an object of another class. It inherits all other attributes from Plone's tool.",
            table("name", "of", "now", rows=((code(n), b, w) for n, b, w in tool_rows())),
            "## The inside of the catalog",
            "`portal_catalog._catalog` is a `Products.ZCatalog.Catalog.Catalog` with these differences.",
            table("name", "now", rows=((code(n), w) for n, w in inside_rows())),
            "## Index objects",
            "The class of an index object is a subclass, of the same name, of the real index's class.",
            table("class", "overrides", rows=index_rows()),
            "## Views, services, subscribers, adapters and utilities",
            "Registrations with the browser layer of the add-on are not active in sites without it.",
            table("kind", "name", "for", "what it does", rows=((k, code(n), code(f), w) for k, n, f, w in zcml_rows())),
            "## Places that are patched while Zope runs",
            "Attributes of foreign classes and objects: `storage` of zodb-pgjsonb, `instance` for a ZODB connection.",
            table("place", "in", "why", rows=((code(p), code(m), w) for p, m, w in patch_rows())),
        ]
    )


def with_page(text: str) -> str:
    """Return *text*, the page, with its generated part replaced."""
    before, _, rest = text.partition(MARKS[0])
    return f"{before}{MARKS[0]}\n\n{page()}\n\n{MARKS[1]}{rest.partition(MARKS[1])[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_page(PAGE.read_text("utf-8")), "utf-8")
