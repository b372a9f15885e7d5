"""Databases of Plone 6.0 and 6.1, upgraded and moved here in either order, answer as with Plone's own catalog.

The oracle is the same database, upgraded to our Plone with its ZCatalog.
"""

from collections.abc import Iterator
from lxml import html
from pathlib import Path
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.migration import copying
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.acceptance.moves import archive
from tests.acceptance.moves import content
from tests.integration import site as sites
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any
from urllib.parse import parse_qsl
from ZODB.FileStorage import FileStorage
from zodb_pgjsonb.storage import PGJsonbStorage

import pytest


pytestmark = pytest.mark.slow

PROFILE = "profile-plone.pgcatalog:default"
#: Tools removed in Plone 6.2: classes without Acquisition replace them until its upgrade deletes them.
GONE = {"6.0": ["dangling: /plone/portal_properties"], "6.1": []}
PAGES = ("/plone/en", "/plone/en/folder-0", "/plone/en/published")
SEARCHES = (
    "/plone/@search?SearchableText=document&metadata_fields=_all&sort_on=getId",
    "/plone/@search?Subject=Gr%C3%BCn&metadata_fields=_all",
    "/plone/@search?portal_type=Event&end.query=2030-01-01&end.range=min&metadata_fields=_all",
    "/plone/@search?path.query=/plone/en&path.depth=1&sort_on=getObjPositionInParent&metadata_fields=_all",
)
#: Anonymous; a manager; a member who may see one private page. Only the manager may use the REST API of these sites.
LOGINS = (None, MANAGER, "mary:secret")


@pytest.fixture(scope="module", params=archive.VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def made(zope: None, version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the database as created by that Plone."""
    folder = tmp_path_factory.mktemp("made")
    archive.unpack(version, folder)
    return folder


@pytest.fixture(scope="module")
def upgraded(version: str, tmp_path_factory: pytest.TempPathFactory, zope: None) -> Path:
    """Folder of the database upgraded by our Plone, with its ZCatalog."""
    folder = tmp_path_factory.mktemp("upgraded")
    archive.unpack(version, folder)
    archive.upgraded(opened(folder))
    return folder


@pytest.fixture(scope="module")
def expected(upgraded: Path) -> dict[str, Any]:
    """The answers of the upgraded site with its ZCatalog."""
    with sites.opened_on(opened(upgraded)) as db:
        return answers(Site(db))


def opened(folder: Path) -> FileStorage:
    return FileStorage(f"{folder}/Data.fs", blob_dir=f"{folder}/blobs")


def moved(postgres: EmbeddedPostgres, folder: Path, name: str) -> str:
    """Return the DSN of a new database with the content of the FileStorage in *folder*."""
    dsn = postgres.createdb(name)
    target = PGJsonbStorage(dsn=dsn, cache_warm_pct=0)
    copying.copy(copying.SourceStorage(opened(folder)), target)
    target.close()
    return dsn


@pytest.fixture
def site_of(postgres: EmbeddedPostgres, version: str) -> Iterator[Any]:
    """Yield a function that moves the database in a folder, and opens it."""
    name = f"older_{version.replace('.', '_')}"
    yield lambda folder: sites.opened(moved(postgres, folder, name))
    postgres.dropdb(name)


def install(site: Site) -> None:
    with site.inside() as portal:
        portal.portal_setup.runAllImportStepsFromProfile(PROFILE)


def answers(site: Site) -> dict[str, Any]:
    """Return the answers of pages (text and links) to each login, and of searches to the manager."""
    found: dict[str, Any] = {}
    for login in LOGINS:
        for path in PAGES:
            found[f"{login} {path}"] = said(site.web.open(path, login).text)
    for link in SEARCHES:
        path, _, query = link.partition("?")
        answer = site.web.get(path, MANAGER, accept="application/json", **dict(parse_qsl(query)))
        assert answer.status == 200
        found[link] = answer.json
    return found


def said(page: str) -> tuple[str, list[str]]:
    """Return the text of the content column of *page*, and its link targets."""
    [column] = html.fromstring(page).xpath("//*[@id='content']")
    return " ".join(column.text_content().split()), column.xpath(".//@href")


def differences(site: Site) -> list[str]:
    with site.inside() as portal:
        return list(map(str, Verifier(portal.portal_catalog).differences()))


def assert_sound(site: Site, expected: dict[str, Any]) -> None:
    assert differences(site) == []
    with site.inside() as portal:
        assert IPGCatalogTool.providedBy(portal.portal_catalog)
        assert content.lost(portal) == []
    found = answers(site)
    assert [name for name in expected if found[name] != expected[name]] == []


def test_oracle_has_answers(expected: dict[str, Any]) -> None:
    listings = [expected[f"{login} /plone/en/folder-0"] for login in LOGINS]
    seen = [[f"Document {n}" for n in (1, 2) if f"Document {n}" in text] for text, _ in listings]
    assert seen == [[], ["Document 1", "Document 2"], ["Document 1"]]
    assert all(expected[link]["items_total"] for link in SEARCHES)


def test_upgrade_before_the_move_changes_no_answer(site_of: Any, upgraded: Path, expected: dict[str, Any]) -> None:
    with site_of(upgraded) as db:
        install(site := Site(db))
        assert_sound(site, expected)


def test_upgrade_after_the_move_changes_no_answer(
    site_of: Any, version: str, made: Path, expected: dict[str, Any]
) -> None:
    with site_of(made) as db:
        install(site := Site(db))
        assert differences(site) == GONE[version]
        archive.upgrade(site)
        assert_sound(site, expected)
