"""Sites are moved between storages and databases, by the very snippets of the how-to guide."""

from click.testing import CliRunner
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from plone.namedfile.file import NamedBlobFile
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.migration import copying
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from Products.ZCatalog.Catalog import CatalogError
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from typing import Any
from ZODB.FileStorage import FileStorage
from zodb_pgjsonb.storage import PGJsonbStorage

import itertools
import logging
import pytest
import re
import shlex
import transaction


pytestmark = pytest.mark.slow


GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "move-storage.md"
FILE_DATA = b"what is in a file" * 100
MISSING = "plone.pgcatalog.indexing.transition"
_numbers = itertools.count(1)


def snippet(name: str) -> str:
    """Return the text of the block *name* in the guide."""
    [text] = re.findall(rf"^% snippet: {name}\n```\w+\n(.*?)^```", GUIDE.read_text("utf-8"), re.M | re.S)
    return str(text)


class Guide:
    """Runs the guide's snippets with the paths and databases of the test."""

    def __init__(self, folder: Path, dsn: str, second: str = "") -> None:
        self.databases = {"old/zope.conf": dsn, "new/zope.conf": second}
        self.folder = folder
        self.replacements = {"folder.zexp": f"{folder}/folder.zexp"}

    def text(self, name: str) -> str:
        text = snippet(name)
        for old, new in self.replacements.items():
            text = text.replace(old, new)
        return text

    def run(self, name: str, **names: Any) -> None:
        exec(compile(self.text(name), f"{GUIDE.name}: {name}", "exec"), {"transaction": transaction, **names})

    def command(self, name: str) -> None:
        """Run a snippet that is one command of pgcatalog; write its configurations before."""
        words = shlex.split(self.text(name))[1:]
        for conf, dsn in self.databases.items():
            place = self.folder / Path(conf).parent
            place.mkdir()
            words[words.index(conf)] = write_conf(place, dsn)
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        counted, compared = done.output.splitlines()[-2:]
        assert counted == "the target has all objects"
        assert compared.endswith(" objects were compared by value: none differ")


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
    """Return whether the catalog and the content are equal."""
    assert list(map(str, Verifier(portal.portal_catalog).differences())) == []
    return True


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == MISSING and r.levelno == logging.ERROR]


def fill(portal: Any) -> None:
    populate(portal)
    create(portal, "File", "file", file=NamedBlobFile(FILE_DATA, filename="file.txt"))


@pytest.fixture
def filled_dsn(site_with: SiteWith) -> str:
    """DSN of a site with our catalog and content."""
    return site_with(fill)


def test_copy_of_the_transactions_reports_its_missing_catalog(
    filled_dsn: str, empty: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with plone(filled_dsn) as portal:
        before = found(portal)
    assert errors(caplog) == []
    guide = Guide(tmp_path, filled_dsn, empty)
    guide.command("copy-to-database")
    with plone(empty) as portal:
        assert found(portal) == []
        assert found(portal) == []
        [line] = errors(caplog)
        assert line.startswith("/plone/portal_catalog has no table in this database")
        guide.run("rebuild", site=portal)
        assert found(portal) == before
        assert verified(portal)
        assert portal.file.file.data == FILE_DATA
    caplog.clear()
    with plone(empty) as portal:
        assert found(portal) == before
        assert errors(caplog) == []
    with plone(filled_dsn) as portal:
        assert found(portal) == before
        assert verified(portal)


def test_copy_edited_before_the_rebuild_reports_it_too(
    filled_dsn: str, empty: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guide = Guide(tmp_path, filled_dsn, empty)
    guide.command("copy-to-database")
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


def test_copy_in_a_filestorage_reports_that_it_cannot_search(filled_dsn: str, tmp_path: Path) -> None:
    source = PGJsonbStorage(dsn=filled_dsn, cache_warm_pct=0)
    target = FileStorage(f"{tmp_path}/Data.fs", blob_dir=f"{tmp_path}/blobs")
    copying.copy(copying.SourceStorage(source), target)
    source.close()
    target.close()
    with plone_in_file(tmp_path) as portal, pytest.raises(CatalogError, match="zodb-pgjsonb"):
        found(portal)


def test_folder_is_exported_and_imported(filled_dsn: str, dsn: str, tmp_path: Path) -> None:
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
