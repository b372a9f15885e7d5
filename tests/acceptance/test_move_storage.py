"""Sites are moved between storages and databases, by the very snippets of the how-to guide."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from plone.namedfile.file import NamedBlobFile
from plone.pgcatalog.database.embedded import EmbeddedPostgres
from plone.pgcatalog.indexing.verify import Verifier
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCatalog.Catalog import CatalogError
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from typing import Any

import itertools
import logging
import os
import pytest
import re
import subprocess
import transaction


pytestmark = pytest.mark.slow


GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "move-storage.md"
DSN = "host=localhost dbname=plone"
CONTENT = b"what is in a file" * 100
MISSING = "plone.pgcatalog.database.missing"
_numbers = itertools.count(1)


def snippet(name: str) -> str:
    """The text of the block *name* in the guide."""
    [text] = re.findall(rf"^% snippet: {name}\n```\w+\n(.*?)^```", GUIDE.read_text("utf-8"), re.M | re.S)
    return str(text)


class Guide:
    """Runs the guide's snippets with the paths and databases of the test."""

    def __init__(self, folder: Path, dsn: str, second: str = "") -> None:
        self.replacements = {
            f"{DSN}2": second,
            DSN: dsn,
            "var/filestorage/Data.fs": f"{folder}/Data.fs",
            "var/blobstorage": f"{folder}/blobs",
            "folder.zexp": f"{folder}/folder.zexp",
            "plone.dump": f"{folder}/plone.dump",
        }

    def text(self, name: str) -> str:
        text = snippet(name)
        for old, new in self.replacements.items():
            text = text.replace(old, new)
        return text

    def run(self, name: str, **names: Any) -> None:
        exec(compile(self.text(name), f"{GUIDE.name}: {name}", "exec"), {"transaction": transaction, **names})

    def shell(self, name: str, binaries: Path) -> None:
        path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(["sh", "-e", "-c", self.text(name)], env=os.environ | {"PATH": path}, check=True, timeout=120)


@contextmanager
def plone(dsn: str) -> Iterator[Any]:
    """Yield the site in the database *dsn*, as admin."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        yield portal


@contextmanager
def plone_in_file(folder: Path) -> Iterator[Any]:
    """Yield the site in a FileStorage, as admin."""
    with sites.opened_in_file(folder) as db, sites.inside(db) as portal:
        yield portal


@pytest.fixture
def empty(postgres: EmbeddedPostgres) -> str:
    """DSN of an empty database."""
    return postgres.createdb(f"moved_{next(_numbers)}")


def found(portal: Any, **query: Any) -> list[str]:
    return sorted(b.getPath() for b in portal.portal_catalog.unrestrictedSearchResults(**(query or {"path": "/"})))


def verified(portal: Any) -> bool:
    """True when the catalog and the content are the same."""
    assert list(map(str, Verifier(portal.portal_catalog).differences())) == []
    return True


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == MISSING and r.levelno == logging.ERROR]


def fill(portal: Any) -> None:
    populate(portal)
    create(portal, "File", "file", file=NamedBlobFile(CONTENT, filename="file.txt"))


@pytest.fixture
def filled_dsn(site_with: SiteWith) -> str:
    """DSN of a site with our catalog and content."""
    return site_with(fill)


def test_from_a_filestorage_and_back(stock_dsn: str, empty: str, postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    Guide(tmp_path / "first", stock_dsn).run("copy-to-filestorage")
    with plone_in_file(tmp_path / "first") as portal:
        assert type(portal.portal_catalog.aq_base) is CatalogTool
        populate(portal)
        transaction.commit()
        before = found(portal)
    guide = Guide(tmp_path / "first", empty)
    guide.run("copy-from-filestorage")
    with plone(empty) as portal:
        assert found(portal) == before
        guide.run("install", site=portal)
        assert found(portal) == before
        assert verified(portal)
        create(portal, "Document", "later")
        transaction.commit()
        guide.run("uninstall", site=portal)
    Guide(tmp_path / "second", empty).run("copy-to-filestorage")
    with plone_in_file(tmp_path / "second") as portal:
        assert type(portal.portal_catalog.aq_base) is CatalogTool
        assert found(portal) == sorted([*before, "/plone/later"])
        assert found(portal, Title="quick") == []
        portal.later.title = "Quick"
        portal.later.reindexObject()
        transaction.commit()
        assert found(portal, Title="quick") == ["/plone/later"]
    back = postgres.createdb(f"moved_{next(_numbers)}")
    guide = Guide(tmp_path / "second", back)
    guide.run("copy-from-filestorage")
    with plone(back) as portal:
        guide.run("install", site=portal)
        assert found(portal, Title="quick") == ["/plone/later"]
        assert verified(portal)


def test_a_dump_has_everything(filled_dsn: str, empty: str, postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    with plone(filled_dsn) as portal:
        before = found(portal)
    Guide(tmp_path, filled_dsn, empty).shell("dump", postgres._binaries)
    with plone(empty) as portal:
        assert found(portal) == before
        assert verified(portal)
        portal.manage_renameObject("my_folder", "renamed")
        transaction.commit()
        assert verified(portal)
        assert len(found(portal, path="/plone/renamed")) > 5


def test_a_copy_of_the_transactions_says_that_it_has_no_catalog(
    filled_dsn: str, empty: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with plone(filled_dsn) as portal:
        before = found(portal)
    assert errors(caplog) == []
    guide = Guide(tmp_path, filled_dsn, empty)
    guide.run("copy-to-database")
    with plone(empty) as portal:
        assert found(portal) == []
        assert found(portal) == []
        [line] = errors(caplog)
        assert line.startswith("/plone/portal_catalog has no table in this database")
        guide.run("rebuild", site=portal)
        assert found(portal) == before
        assert verified(portal)
        assert portal.file.file.data == CONTENT
    caplog.clear()
    with plone(empty) as portal:
        assert found(portal) == before
        assert errors(caplog) == []
    with plone(filled_dsn) as portal:
        assert found(portal) == before
        assert verified(portal)


def test_a_copy_that_is_edited_before_the_rebuild_says_so_too(
    filled_dsn: str, empty: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guide = Guide(tmp_path, filled_dsn, empty)
    guide.run("copy-to-database")
    with plone(empty) as portal:
        portal.my_folder.title = "Edited"
        portal.my_folder.reindexObject()
        transaction.commit()
        assert len(errors(caplog)) == 1
        assert found(portal) == ["/plone/my_folder"]
        missing = [d.kind for d in Verifier(portal.portal_catalog).differences()]
        assert set(missing) == {"missing"}
        guide.run("rebuild", site=portal)
        assert verified(portal)
        assert found(portal, Title="edited") == ["/plone/my_folder"]


def test_a_copy_in_a_filestorage_says_that_it_cannot_search(filled_dsn: str, tmp_path: Path) -> None:
    Guide(tmp_path, filled_dsn).run("copy-to-filestorage")
    with plone_in_file(tmp_path) as portal, pytest.raises(CatalogError, match="zodb-pgjsonb"):
        found(portal)


def test_a_folder_is_exported_and_imported(filled_dsn: str, dsn: str, tmp_path: Path) -> None:
    guide = Guide(tmp_path, filled_dsn)
    with plone(filled_dsn) as portal:
        before = found(portal, path="/plone/my_folder")
        titles = sorted(b.Title for b in portal.portal_catalog(path="/plone/my_folder"))
        guide.run("export", folder=portal.my_folder)
    with plone(dsn) as portal:
        guide.run("import", other_site=portal)
        assert found(portal, path="/plone/my_folder") == before
        assert sorted(b.Title for b in portal.portal_catalog(path="/plone/my_folder")) == titles
        assert verified(portal)
