"""The page from-your-site, followed by its own blocks: a site with content of many kinds, from each storage and back."""

from checks.moving import page
from checks.moving.walk import Walk
from click.testing import CliRunner
from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.cli.target import configured_databases
from plone.pgcatalog.cli.target import main_storage
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.migration import copying
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from Products.CMFPlone.CatalogTool import CatalogTool
from tests.acceptance.moves import content
from tests.acceptance.moves import sources
from tests.integration import site as sites
from tests.unit.sources import between
from typing import Any
from zodb_pgjsonb.storage import PGJsonbStorage

import contextlib
import psycopg
import psycopg.sql
import pytest
import re
import shlex
import transaction


DOCUMENTS = 10
#: Additional settings of the test server; `pgcatalog check` reports worse ones.
RECKLESS = {"synchronous_commit": "off"}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server with the settings of the page."""
    with EmbeddedPostgres(settings={**page.settings(), **RECKLESS}) as postgres:
        yield postgres


@pytest.fixture(scope="module")
def old_site(stock_template: str, postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a Data.fs and blobs, with a site with content of many kinds."""
    folder = tmp_path_factory.mktemp("old")
    storage = sources.copied_to_file(sites.clone(postgres, stock_template), folder)
    with sites.opened_on(storage) as db, sites.inside(db) as portal:
        content.fill(portal, DOCUMENTS)
        assert content.lost(portal) == []
    return folder


def paths(portal: Any) -> list[str]:
    return sorted(portal.portal_catalog._catalog.uids)


def run(walk: Walk, name: str) -> list[int]:
    """Run the block *name*, whose commands need no Zope, in this process; return their exit statuses."""
    statuses = []
    with contextlib.chdir(walk.folder):
        for line in walk.text(name).splitlines():
            result = CliRunner().invoke(main, shlex.split(line)[1:])
            print(line, result.output)
            statuses.append(result.exit_code)
    return statuses


def assert_all_there(storage: Any, is_ours: bool, before: list[str]) -> None:
    """Check that the site in *storage* has its content and its catalog; close the storage."""
    with sites.opened_on(storage) as db, sites.inside(db) as portal:
        tool = portal.portal_catalog
        assert IPGCatalogTool.providedBy(tool) == is_ours
        assert is_ours or type(tool.aq_base) is CatalogTool
        assert paths(portal) == before
        if is_ours:
            assert list(map(str, Verifier(tool).differences())) == []
        assert content.lost(portal) == []


def start(server: EmbeddedPostgres, old_site: Path, folder: Path, kind: str, layout: str) -> tuple[Walk, list[str]]:
    """Return a walk from a storage of *kind* in an instance of *layout*, and the paths in its site's catalog."""
    walk = Walk(folder, server, kind, "plone", layout)
    sources.take_file(folder, layout, old_site / "Data.fs", old_site / "blobs")
    with sites.opened_on(sources.file_in(folder, layout)) as db, sites.inside(db) as portal:
        return walk, paths(portal)


@pytest.mark.slow
def test_from_zeo_and_back_by_every_command_of_the_page(
    old_site: Path, server: EmbeddedPostgres, tmp_path: Path
) -> None:
    layout = "mkwsgiinstance"
    walk, before = start(server, old_site, tmp_path, "zeo", layout)
    walk.prepare()
    with walk.old_storage():
        walk.rehearse()
        walk.switch()
    assert_all_there(PGJsonbStorage(dsn=walk.dsn("plone"), cache_warm_pct=0), True, before)
    walk.go_back()
    # Served by ZEO again.
    for old, back in zip(sources.places(tmp_path, layout), sources.places(tmp_path, "back"), strict=True):
        old.rename(tmp_path / f"gone-{old.name}")
        back.rename(old)
    (tmp_path / "var" / "zeocache").rename(tmp_path / "gone-cache")
    with walk.old_storage():
        assert_all_there(main_storage(str(walk.conf())).open(), False, before)
    assert "the target has all objects" in walk.transcript
    assert "no findings" in walk.transcript
    tidy(server)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["filestorage", "relstorage"])
def test_from_another_storage_and_back(kind: str, old_site: Path, server: EmbeddedPostgres, tmp_path: Path) -> None:
    layout = "cookiecutter-zope-instance"
    walk, before = start(server, old_site, tmp_path, kind, layout)
    walk.sql("database")
    if kind == "relstorage":
        walk.create_database("old")
        walk.create_database("back")
        target = main_storage(str(walk.conf())).open()
        copying.copy(copying.SourceStorage(sources.file_in(tmp_path, layout)), target)
        target.close()
    assert run(walk, "copy") == [0]
    assert run(walk, "copy") == [2]
    for profile in ("default", "uninstall"):
        with sites.opened(walk.dsn("plone")) as db, sites.inside(db) as portal:
            portal.portal_setup.runAllImportStepsFromProfile(f"profile-plone.pgcatalog:{profile}")
            transaction.commit()
        if profile == "default":
            assert_all_there(PGJsonbStorage(dsn=walk.dsn("plone"), cache_warm_pct=0), True, before)
    walk.configure_back()
    copy_as_others_do(walk)
    assert run(walk, "repair") == [1, 0]
    assert run(walk, "repair") == [0, 0]
    assert_all_there(main_storage(str(walk.conf("back"))).open(), False, before)
    tidy(server)


def copy_as_others_do(walk: Walk) -> None:
    """Copy back as zodbconvert does, against which the page warns."""
    source = PGJsonbStorage(dsn=walk.dsn("plone"), cache_warm_pct=0)
    target = main_storage(str(walk.conf("back"))).open()
    target.copyTransactionsFrom(source)
    target.close()
    source.close()


def tidy(server: EmbeddedPostgres) -> None:
    """Drop the role of the page and the objects that it owns."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        for (name,) in connection.execute(
            "SELECT datname FROM pg_database WHERE datname <> 'postgres' AND NOT datistemplate"
        ):
            connection.execute(psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(psycopg.sql.Identifier(name)))
        connection.execute("DROP ROLE plone")


def test_ways_to_a_zope_conf_are_equivalent(tmp_path: Path) -> None:
    """Zope reads the zope.conf generated by buildout's recipe like the page's own; the same for the other keys."""
    blocks = page.snippets()
    wrapper = blocks["buildout"].partition("storage-wrapper =\n")[2]
    made = "%import zodb_pgjsonb\ninstancehome /srv/plone\n<zodb_db main>\n{}\nmount-point /\n</zodb_db>\n".format(
        wrapper % "<filestorage>\npath Data.fs\n</filestorage>"
    )
    placed = page.with_block(sources.COOKIECUTTER_CONF.format(folder="/srv/plone"), blocks["new-conf"])
    found = [read(tmp_path, text) for text in (placed, made)]
    dsn = "host=localhost dbname=plone user=plone password=secret"
    assert found == [("pgjsonb", dsn, 5, 6)] * 2
    for line in (f"db_pgjsonb_dsn: {dsn}", "db_pool_size: 5", "db_pgjsonb_pool_max_size: 6", "db_storage: pgjsonb"):
        assert f"  {line}\n" in blocks["cookiecutter"]
    assert blocks["environment"] == f'PGCATALOG_SITE_DSN="{dsn}"\n'
    folder = page.PAGE.parents[2] / "scripts" / "container"
    assert any("PGCATALOG_SITE_DSN" in path.read_text("utf-8") for path in folder.iterdir())


def test_transcripts_have_the_commands_of_the_page() -> None:
    commands = {line for block in page.snippets().values() for line in block.splitlines()}
    typed = re.findall(r"^\$ (.+)$", between(page.TRANSCRIPTS, "transcripts"), re.M)
    assert typed
    assert set(typed) <= commands


def read(folder: Path, text: str) -> tuple[str, str | None, int, int | None]:
    """Return the values that Zope reads from a zope.conf: storage, DSN, pool-size and pool-max-size."""
    (folder / "var").mkdir(exist_ok=True)
    conf = folder / "zope.conf"
    conf.write_text(text.replace("/srv/plone", str(folder)))
    [database] = configured_databases(str(conf))
    return database.storage, database.dsn, database.pool_size, database.pool_max
