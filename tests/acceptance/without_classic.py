"""A site with Products.CMFPlone, plone.restapi and plone.volto only.

Usage: ``python -m tests.acceptance.without_classic DSN FOLDER``.  ``installed`` creates a folder of packages without those
that none of these requires.  Products.CMFPlone 6.2 needs plone.app.layout; it cannot be imported while the ZCML of
plone.pgcatalog is loaded.
"""

from importlib.metadata import distributions
from importlib.metadata import requires
from importlib.util import find_spec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pathlib import Path
from plone.pgcatalog.interfaces import IPGCatalogTool
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.web import MANAGER
from tests.integration.web import Web
from typing import Any

import os
import sys
import sysconfig
import transaction


ROOT = Path(__file__).parents[2]
NAMESPACES = ("plone", "plone.app", "plonetheme")
ROOTS = ("Products.CMFPlone", "plone.restapi", "plone.volto", "plone.pgcatalog")
REFUSED = "plone.app.layout"
SITE_ZCML = """\
<configure xmlns="http://namespaces.zope.org/zope" xmlns:five="http://namespaces.zope.org/five"
    xmlns:meta="http://namespaces.zope.org/meta">
  <meta:provides feature="disable-autoinclude" />
  <include package="Zope2.App" />
  <five:loadProducts file="meta.zcml" />
  <five:loadProducts />
  <include package="plone.restapi" />
  <include package="plone.volto" />
  <include package="refuse_layout" />
  <include package="plone.pgcatalog" />
  <include package="return_layout" />
  <five:loadProductsOverrides />
  <includeOverrides package="plone.pgcatalog" file="overrides.zcml" />
</configure>
"""
PANELS = ("pgcatalog", "pgcatalog-search", "pgcatalog-search-page")
hidden: dict[str, Any] = {}


def required(*names: str) -> set[str]:
    """Return the installed distributions that *names* require, directly or indirectly."""
    there = {canonicalize_name(distribution.metadata["Name"]) for distribution in distributions()}
    found: set[str] = set()
    waiting = {canonicalize_name(name) for name in names}
    while waiting:
        found.add(name := waiting.pop())
        for requirement in map(Requirement, requires(name) or ()):
            extras = [{"extra": extra} for extra in ("", *requirement.extras)]
            if requirement.marker is None or any(map(requirement.marker.evaluate, extras)):
                waiting |= {canonicalize_name(requirement.name)} & there - found
    return found


def installed(folder: Path) -> str:
    """Return the PYTHONPATH of all installed packages except the omitted ones, as links in *folder*."""
    others = {canonicalize_name(distribution.metadata["Name"]) for distribution in distributions()} - required(*ROOTS)
    refused = {name for name in others if name.startswith(("plone-", "plonetheme-"))}
    assert {"plone-classicui", "plone-app-multilingual"} <= refused
    assert canonicalize_name(REFUSED) not in refused

    def link(source: Path, target: Path, prefix: str) -> None:
        target.mkdir()
        for path in source.iterdir():
            name = canonicalize_name(prefix + path.name.partition("-")[0])
            if f"{prefix}{path.name}" in NAMESPACES:
                link(path, target / path.name, f"{prefix}{path.name}.")
            elif name not in refused:
                (target / path.name).symlink_to(path)

    link(Path(sysconfig.get_path("purelib")), folder, "")
    return os.pathsep.join([str(folder), str(ROOT / "src"), str(ROOT)])


def refuse_layout() -> None:
    """Make imports of plone.app.layout fail."""
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{REFUSED}.")]:
        hidden[name] = sys.modules[name]
        sys.modules[name] = None  # type: ignore[assignment]  # as the import system marks what there is not


def return_layout() -> None:
    """Allow imports of plone.app.layout again."""
    sys.modules.update(hidden)


def write_packages(folder: Path) -> None:
    """Write the packages whose import calls ``refuse_layout`` and ``return_layout``."""
    for name in ("refuse_layout", "return_layout"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(
            f"from tests.acceptance import without_classic\n\nwithout_classic.{name}()\n"
        )
        (folder / name / "configure.zcml").write_text('<configure xmlns="http://namespaces.zope.org/zope" />\n')
    sys.path.insert(0, str(folder))


def main(dsn: str, folder: Path) -> None:
    """Create the site in the database *dsn*, with Zope's files in *folder*, and use it."""
    assert find_spec("plone.classicui") is None
    write_packages(folder)
    sites.SITE_ZCML = SITE_ZCML
    sites.load_zope(folder / "instance")
    assert "plone.pgcatalog.classic" not in sys.modules
    assert "plone.pgcatalog.restapi" in sys.modules
    sites.create_site(dsn, profiles=("plone.restapi:default", "plone.volto:default", "plone.pgcatalog:default"))
    with sites.opened(dsn) as db:
        use(db)


def use(db: Any) -> None:
    """Search the site of *db* and change its settings, by REST."""
    web = Web(db)
    with sites.inside(db) as portal:
        create(portal, "Document", "page", title="A hedgehog in the garden")
        transaction.commit()
        assert IPGCatalogTool.providedBy(portal.portal_catalog)
    for service, name in (("@search", "SearchableText"), ("@pgsearch", "q")):
        answer = web.get(f"/plone/{service}", MANAGER, "application/json", **{name: "hedgehog"})
        assert (answer.status, "/plone/page" in answer.text) == (200, True), answer.text
    changed = web.patch("/plone/@controlpanels/pgcatalog-search-page", MANAGER, {"count_limit": 7})
    assert changed.status == 204, changed.text
    panels = {name: web.get(f"/plone/@controlpanels/{name}", MANAGER, "application/json").json for name in PANELS}
    assert all(panel["data"] for panel in panels.values())
    assert panels["pgcatalog-search-page"]["data"]["count_limit"] == 7
    for path in ("/plone/@@search", "/plone/page", "/plone/portal_catalog/manage_catalogView"):
        answer = web.get(path, MANAGER, "text/html")
        assert (answer.status, "search-facets" in answer.text) == (200, False), answer.text
    with sites.inside(db) as portal:
        portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
        assert not IPGCatalogTool.providedBy(portal.portal_catalog)
        assert len(portal.portal_catalog.unrestrictedSearchResults(SearchableText="hedgehog")) == 1


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
