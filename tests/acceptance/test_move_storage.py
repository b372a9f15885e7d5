"""Sites are moved between storages and databases, by the very snippets of the how-to guide."""

from checks.moving.page import snippets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from plone.namedfile.file import NamedBlobFile
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from Products.ZCatalog.Catalog import CatalogError
from tests.acceptance.cli import invoke
from tests.acceptance.cli import write_conf
from tests.acceptance.moves import sources
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from typing import Any

import itertools
import logging
import pytest
import shlex
import transaction


pytestmark = pytest.mark.slow


SNIPPETS = snippets(Path(__file__).parents[2] / "docs" / "how-to" / "move-storage.md")
FILE_DATA = b"what is in a file" * 100
MISSING = "plone.pgcatalog.indexing.transition"
_numbers = itertools.count(1)


def fill(portal: Any) -> None:
    populate(portal)
    create(portal, "File", "file", file=NamedBlobFile(FILE_DATA, filename="file.txt"))


CONTENT = fill


def run(text: str, **names: Any) -> None:
    exec(compile(text, "move-storage.md", "exec"), {"transaction": transaction, **names})


@pytest.fixture
def copied(dsn: str, postgres: EmbeddedPostgres, tmp_path: Path) -> str:
    """DSN of a copy of the site, made by the guide's command."""
    copy = postgres.createdb(f"moved_{next(_numbers)}")
    words = shlex.split(SNIPPETS["copy-to-database"])[1:]
    for conf, database in (("old/zope.conf", dsn), ("new/zope.conf", copy)):
        place = tmp_path / Path(conf).parent
        place.mkdir()
        words[words.index(conf)] = write_conf(place, database)
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    counted, compared = done.output.splitlines()[-2:]
    assert counted == "the target has all objects"
    assert compared.endswith(" objects were compared by value: none differ")
    return copy


@contextmanager
def plone(dsn: str) -> Iterator[Any]:
    """Yield the site in the database *dsn*, as admin."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        yield portal


def found(portal: Any, **query: Any) -> list[str]:
    return sorted(b.getPath() for b in portal.portal_catalog.unrestrictedSearchResults(**(query or {"path": "/"})))


def differences(portal: Any) -> list[str]:
    return [difference.kind for difference in Verifier(portal.portal_catalog).differences()]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == MISSING and r.levelno == logging.ERROR]


def test_copy_of_the_transactions_reports_its_missing_catalog(
    dsn: str, copied: str, caplog: pytest.LogCaptureFixture
) -> None:
    with plone(dsn) as portal:
        before = found(portal)
    assert errors(caplog) == []
    with plone(copied) as portal:
        assert found(portal) == []
        assert found(portal) == []
        [line] = errors(caplog)
        assert line.startswith("/plone/portal_catalog has no table in this database")
        run(SNIPPETS["rebuild"], site=portal)
        assert portal.file.file.data == FILE_DATA
    caplog.clear()
    for moved in (copied, dsn):
        with plone(moved) as portal:
            assert found(portal) == before
            assert differences(portal) == []
    assert errors(caplog) == []


def test_copy_edited_before_the_rebuild_reports_it_too(copied: str, caplog: pytest.LogCaptureFixture) -> None:
    with plone(copied) as portal:
        portal.my_folder.title = "Edited"
        portal.my_folder.reindexObject()
        transaction.commit()
        assert len(errors(caplog)) == 1
        assert found(portal) == ["/plone/my_folder"]
        assert set(differences(portal)) == {"missing"}
        run(SNIPPETS["rebuild"], site=portal)
        assert differences(portal) == []
        assert found(portal, Title="edited") == ["/plone/my_folder"]


def test_copy_in_a_filestorage_reports_that_it_cannot_search(dsn: str, tmp_path: Path) -> None:
    storage = sources.copied_to_file(dsn, tmp_path)
    refused = pytest.raises(CatalogError, match="zodb-pgjsonb")
    with sites.opened_on(storage) as db, sites.inside(db) as portal, refused:
        found(portal)


def test_folder_is_exported_and_imported(
    dsn: str, site_template: str, postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    def content(portal: Any) -> list[tuple[str, str]]:
        return sorted((brain.getPath(), brain.Title) for brain in portal.portal_catalog(path="/plone/my_folder"))

    export, import_ = (
        SNIPPETS[name].replace("folder.zexp", f"{tmp_path}/folder.zexp") for name in ("export", "import")
    )
    with plone(dsn) as portal:
        before = content(portal)
        run(export, folder=portal.my_folder)
    with plone(sites.clone(postgres, site_template)) as portal:
        run(import_, other_site=portal)
        assert content(portal) == before != []
        assert differences(portal) == []
