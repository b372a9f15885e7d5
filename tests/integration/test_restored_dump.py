"""A dump restored without some of the catalog's tables: the start recreates them, and a rebuild fills them.

The stamps by which the storage recognises tables created before are in the dump.
"""

from pathlib import Path
from plone.pgcatalog.database.restored import missing
from plone.pgcatalog.database.restored import TABLES
from plone.pgcatalog.indexing.verify import Verifier
from tests.acceptance.cli import answer
from tests.acceptance.cli import pgcatalog
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import rebuilding
from tests.integration.rebuilding import sql
from tests.integration.rebuilding import tables
from tests.integration.web import MANAGER
from tests.integration.web import Web
from typing import Any
from unittest.mock import ANY

import logging
import psycopg
import pytest
import transaction


#: Placeholder for the name of the table with a catalog's rows.
RELATION = "relation"
ALL = (*TABLES, RELATION)
#: Case -> missing tables.
CASES: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in ALL},
    "all": ALL,
    "all that catalogs share": TABLES,
    "the first half": ALL[: len(ALL) // 2],
    "the other half": ALL[len(ALL) // 2 :],
    "rows, words and lists": (RELATION, "pgcatalog_words", "pgcatalog_sets"),
}
#: The cases that ``make test`` runs.
FIRST = ("rows, words and lists", "all")
#: Without these the rows cannot be read; without any other one they are read as usual.
NEEDED = {RELATION, "pgcatalog_state", "pgcatalog_sets"}


def restored_without(dsn: str, names: tuple[str, ...]) -> list[str]:
    """Drop the tables *names* of the database *dsn*; return their real names."""
    dropped = [relation_of(dsn) if name == RELATION else name for name in names]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP TABLE {', '.join(dropped)} CASCADE")
    # Only the dropped table had the name of the other.
    return dropped[:-1] if {RELATION, "pgcatalog_state"} <= set(names) else dropped


def relation_of(dsn: str) -> str:
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    return str(relation)


def findings(dsn: str) -> str:
    """Return the findings of ``pgcatalog check`` except those about the settings of the test server, one per line."""
    _, found = answer("check", "--dsn", dsn)
    return "\n".join(f"{f['text']}. {f['remedy']}" for f in found["findings"] if f["subject"] in ("tables", "catalog"))


def found(portal: Any) -> list[str]:
    return sorted(brain.getPath() for brain in portal.portal_catalog.searchResults(path="/"))


def search(web: Web, **query: Any) -> Any:
    return web.get("/plone/@search", MANAGER, accept="application/json", **query)


@pytest.fixture
def filled_dsn(site_with: SiteWith) -> str:
    return site_with(populate)


@pytest.mark.parametrize("case", [*FIRST, *(pytest.param(c, marks=pytest.mark.slow) for c in CASES if c not in FIRST)])
def test_start_recreates_tables_and_a_rebuild_fills_them(filled_dsn: str, case: str) -> None:
    dsn = filled_dsn
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        expected = found(portal)
    dropped = restored_without(dsn, CASES[case])

    said = findings(dsn)
    assert [name for name in dropped if name not in said] == []
    assert "Restart Zope to recreate them" in said
    code, status = answer("status", "--dsn", dsn)
    assert code == 1
    assert [name for name in dropped if name not in " ".join(status["attention"])] == []

    with sites.opened(dsn) as db:
        web = Web(db)
        for page in ("/plone", "/plone/sitemap", "/plone/@@search"):
            shown = web.get(page, MANAGER, accept="text/html", SearchableText="page", Title="page")
            assert shown.status == 200, shown.text
        assert search(web, SearchableText="page", sort_on="modified").status == 200
        saved = web.send_json("POST", "/plone", MANAGER, {"@type": "Document", "title": "Saved", "id": "saved"})
        assert saved.status == 201, saved.text
        assert search(web, Title="Saved").json["items_total"] == 1
        with psycopg.connect(dsn) as connection:
            gone = [
                name for name in TABLES if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() == (None,)
            ]
        assert gone == []

        with sites.inside(db) as portal:
            if NEEDED.isdisjoint(CASES[case]):
                assert found(portal) == sorted([*expected, "/plone/saved"])
            else:
                assert found(portal) == ["/plone", "/plone/saved"]
                code, status = answer("status", "--dsn", dsn)
                assert code == 1
                assert any("pgcatalog rebuild to fill it" in sentence for sentence in status["attention"])
                assert "pgcatalog rebuild to fill it" in findings(dsn)
            transaction.abort()
            rebuild(db)
            transaction.begin()
            assert found(portal) == sorted([*expected, "/plone/saved"])
            assert list(Verifier(portal.portal_catalog).differences()) == []
            assert portal.portal_catalog.suggest("pag") == ["page", "page2"]
        assert answer("status", "--dsn", dsn)[1]["attention"] == []
        assert findings(dsn) == ""
    # Nothing of the dump remains.
    answer("vacuum", "--dsn", dsn)
    assert tables(dsn) == {relation_of(dsn)}


def test_lost_lists_are_reported(filled_dsn: str) -> None:
    """The table is there but empty, as in a dump without its data."""
    dsn = filled_dsn
    sql(dsn, "TRUNCATE pgcatalog_sets")
    assert f"rows of pgcatalog_sets for {relation_of(dsn)}" in findings(dsn)
    with sites.opened(dsn) as db:
        assert search(Web(db), portal_type="Document").json["items_total"] == 0
        assert "/plone: the catalog has no table" in findings(dsn)
        rebuild(db)
        assert search(Web(db), portal_type="Document").json["items_total"] > 0
    assert findings(dsn) == ""


def test_catalog_that_is_lost_twice_can_be_saved_to(filled_dsn: str) -> None:
    """Remaining tables have the names that the new catalog would get."""
    dsn = filled_dsn
    for name in ("one", "two"):
        restored_without(dsn, ("pgcatalog_state",))
        with sites.opened(dsn) as db, sites.inside(db) as portal:
            create(portal, "Document", name)
            transaction.commit()
            assert f"/plone/{name}" in found(portal)
        assert "only objects saved since" in findings(dsn)
    with sites.opened(dsn) as db:
        rebuild(db)
        with sites.inside(db) as portal:
            assert {"/plone/one", "/plone/two", "/plone/my_folder/page"} <= set(found(portal))
    answer("vacuum", "--dsn", dsn)
    assert tables(dsn) == {relation_of(dsn)}


@pytest.mark.parametrize(
    "name",
    [
        "_idx",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("pgcatalog_queue", "pgcatalog_rebuild_change", RELATION)),
    ],
)
def test_a_rebuild_that_was_interrupted_is_no_short_cut(filled_dsn: str, name: str) -> None:
    """Without its visits it would end with its rows so far, and without a table it could not continue."""
    dsn = filled_dsn
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            expected = found(portal)
        with rebuilding(db) as steps:
            steps.step()
        [(target,)] = sql(dsn, "SELECT relation FROM pgcatalog_rebuild")
    lost = {RELATION: target, "_idx": f"{target}_idx"}.get(name, name)
    sql(dsn, f"DROP TABLE {lost} CASCADE")
    assert lost in findings(dsn)
    with sites.opened(dsn) as db:
        rebuild(db)
        with sites.inside(db) as portal:
            assert found(portal) == expected
    assert findings(dsn) == ""


def test_a_fresh_database_has_lost_nothing(database: str, zope: None, caplog: pytest.LogCaptureFixture) -> None:
    with sites.opened(database) as db:
        db.open().close()
    assert [r for r in caplog.records if r.levelno >= logging.WARNING and "missing" in r.getMessage()] == []
    assert findings(database) == ""
    # The catalog was uninstalled, and the tables shared by all catalogs dropped.
    restored_without(database, TABLES)
    with sites.opened(database) as db:
        db.open().close()
    with psycopg.connect(database, row_factory=psycopg.rows.dict_row) as connection:
        assert missing(connection) == []


@pytest.mark.slow
def test_commands_show_the_remedy(filled_dsn: str, tmp_path: Path) -> None:
    """In processes of their own: the first one that starts Zope recreates the tables."""
    restored_without(filled_dsn, CASES["rows, words and lists"])
    conf = write_conf(tmp_path, filled_dsn)
    checked = pgcatalog("check", conf)
    assert checked.returncode == 1
    assert "Restart Zope to recreate them." in checked.stdout
    verified = pgcatalog("verify", conf, "--site", "plone")
    assert verified.returncode == 1
    assert "pgcatalog rebuild to fill it" in verified.stderr
    filled = pgcatalog("install", conf, "--site", "plone")
    assert filled.returncode == 0
    assert answer("status", "--dsn", filled_dsn) == (0, ANY)
    assert "Traceback" not in "".join(done.stdout + done.stderr for done in (checked, verified, filled))
