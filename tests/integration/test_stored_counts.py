"""Facets of unfiltered searches are read from stored counts, which are right after any change of rows."""

from collections.abc import Iterator
from datetime import datetime
from datetime import UTC
from pathlib import Path
from plone.pgcatalog.database import counts
from plone.pgcatalog.database.direct import direct_dsn
from plone.pgcatalog.database.layout import emptied
from plone.pgcatalog.database.retirement import drop_retired
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.results.cache import result_cache
from Products.CMFCore.indexing import processQueue
from random import Random
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.fixtures import SiteWith
from tests.integration.pages import second_connection
from tests.integration.people import FUTURE
from tests.integration.people import make_all
from tests.integration.people import PAST
from tests.integration.people import PEOPLE
from tests.integration.people import share
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from tests.integration.rebuilding import tables
from tests.integration.stored_counts import check
from tests.integration.stored_counts import counted
from tests.integration.stored_counts import different
from tests.integration.stored_counts import left
from tests.integration.stored_counts import NAMES
from tests.integration.stored_counts import save
from tests.integration.stored_counts import TABLES
from tests.integration.traffic import traced
from typing import Any

import psycopg
import pytest
import subprocess
import transaction


CONTENT = make_all
TAGS = ("Rot", "grün", "a\x01b", "", "x y", "7")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    result_cache().clear()
    return


def change(portal: Any, rng: Random, number: int) -> None:
    """Change something at random that counts are grouped by, or that is counted."""
    folder = rng.choice([portal.public, portal.closed])
    page = folder[rng.choice(sorted(folder.objectIds()))]
    action = rng.randrange(9)
    if action == 0:
        create(folder, rng.choice(["Document", "Folder", "Event"]), f"new-{number}", subject=rng.sample(TAGS, 2))
    elif action == 1:
        page.setSubject(rng.sample(TAGS, rng.randrange(4)))
        page.reindexObject(idxs=["Subject"])
    elif action == 2:
        transitions = [each["id"] for each in portal.portal_workflow.getTransitionsFor(page)]
        for name in transitions[:1]:
            portal.portal_workflow.doActionFor(page, name)
    elif action == 3:
        share(rng.choice([folder, page]), rng.choice(PEOPLE[1:]), "Reader")
    elif action == 4:
        page.setEffectiveDate(rng.choice([PAST, FUTURE]))
        page.setExpirationDate(rng.choice([PAST, None, FUTURE]))
        page.reindexObject()
    elif action == 5 and len(folder.objectIds()) > 4:
        folder.manage_delObjects([page.getId()])
    elif action == 6:
        page.setCreators(rng.choice(["mara", "boss"]))
        page.reindexObject()
    elif action == 7:
        page.reindexObject(idxs=["modified"])
    else:
        portal.portal_catalog.uncatalog_object("/".join(page.getPhysicalPath()))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_stored_counts_are_those_of_the_rows_for_each_user_after_any_change(
    portal: Any, dsn: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "FOLD_COMMITS", 3)
    rng = Random(seed)
    save(portal)
    check(portal)
    for number in range(12):
        point = transaction.savepoint()
        for each in range(rng.randrange(1, 4)):
            change(portal, rng, 10 * number + each)
        if rng.random() < 0.2:
            point.rollback()
        if rng.random() < 0.2:
            transaction.abort()
        save(portal)
        assert set(different(dsn).values()) == {0}
        if number % 4 == 3:
            check(portal)


def test_pending_rows_are_counted_in_rows(portal: Any) -> None:
    save(portal)
    create(portal.public, "Document", "mine", subject=("Rot",))
    processQueue()
    check(portal, are_stored=False)
    transaction.abort()
    check(portal)


def test_each_snapshot_has_its_own_counts_during_saves(portal: Any, dsn: str) -> None:
    save(portal)
    query = {"path": "/plone"}
    with second_connection(portal._p_jar.db()) as (_, other):
        before = counted(other.portal_catalog, query)
        for number in range(3):
            create(portal.public, "Document", f"page{number}", subject=("new",))
            save(portal)
        with psycopg.connect(dsn) as connection:
            counts.fold(connection.cursor(), next(iter(different(dsn))))
        result_cache().clear()
        assert other.portal_catalog.unrestrictedSearchResults(query).facets(NAMES)["Subject"] == before["Subject"]
    transaction.begin()
    result_cache().clear()
    assert portal.portal_catalog(query).facets(["Subject"])["Subject"]["new"] == 3


def test_concurrent_saves_are_both_counted(portal: Any, dsn: str) -> None:
    save(portal)
    with second_connection(portal._p_jar.db()) as (manager, other):
        ours, theirs = portal.public["open-now"], other.public["open-old"]
        for page in (ours, theirs):
            page.setSubject(("both",))
        ours.reindexObject(idxs=["Subject"])
        other.portal_catalog.catalog_object(theirs, idxs=["Subject"])
        transaction.commit()
        manager.commit()
    transaction.begin()
    assert set(different(dsn).values()) == {0}
    check(portal)


NARROWED: dict[str, dict[str, Any]] = {
    "chosen": {"path": "/plone", "Subject": "Rot"},
    "typed": {"path": "/plone", "SearchableText": "needle"},
    "a folder": {"path": "/plone/public"},
    "another date": {"path": "/plone", "created": {"query": PAST, "range": "min"}},
    "an object": {"path": "/plone", "where": Not(Eq("portal_type", "Folder"))},
}


def test_filtered_search_is_counted_in_rows(portal: Any) -> None:
    save(portal)
    catalog = portal.portal_catalog
    for name, query in NARROWED.items():
        found = catalog(query)
        result_cache().clear()
        assert found.facets(NAMES) == counted(catalog, query), name


def test_years_are_counted_in_rows_and_other_facets_read_in_the_same_message(portal: Any) -> None:
    save(portal)
    catalog = portal.portal_catalog
    found = catalog(path="/plone")
    years = {
        str(year): (datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)) for year in (2025, 2026)
    }
    result_cache().clear()
    with traced(portal) as traffic:
        facets = found.facets(NAMES, ranges={"created": years}, children={"path": "/plone"})
    [statement] = traffic[0].matching("GROUP BY")
    assert "FROM pgcatalog_counts" in statement
    assert "found AS" in statement
    alone = {name: found.facets([name])[name] for name in NAMES}
    assert {name: facets[name] for name in NAMES} == alone
    assert sum(facets["created"].values()) == facets.total == len(found)
    assert facets["path"]["/plone/public"] == len(catalog(path="/plone/public"))


@pytest.mark.parametrize("way", ["rebuilt", "cleared", "by SQL", "truncated"])
def test_stored_counts_follow_changes_of_all_rows(portal: Any, dsn: str, way: str) -> None:
    catalog = portal.portal_catalog
    save(portal)
    if way == "rebuilt":
        rebuild(portal._p_jar.db())
    elif way == "cleared":
        catalog.clearFindAndRebuild()
    elif way == "by SQL":
        sql(dsn, "UPDATE {} SET review_state = 'mended', subject = '{{x,y}}' WHERE portal_type = 'Document'")
        sql(dsn, "DELETE FROM {} WHERE portal_type = 'Event'")
    else:
        sql(dsn, "TRUNCATE {} CASCADE")
        for path, obj in [("/plone/public", portal.public), ("/plone/closed", portal.closed)]:
            catalog.uncatalog_object(path)
            catalog.catalog_object(obj, path)
    save(portal)
    assert set(different(dsn).values()) == {0}
    result_cache().clear()
    for name in NAMES:
        live = counted(catalog, {"path": "/plone"})[name]
        assert catalog(path="/plone").facets([name], limit=None)[name] == live
    # The counts of a catalog that is dropped, or emptied because objects are read, are deleted.
    with psycopg.connect(dsn) as connection:
        drop_retired(connection.cursor())
    assert left(dsn) == {name for name in tables(dsn) if not name.endswith(emptied(""))}


def test_wrong_counts_are_reported_and_repaired(portal: Any, dsn: str) -> None:
    save(portal)
    [relation] = different(dsn)
    sql(dsn, "ALTER TABLE {} DISABLE TRIGGER USER")
    sql(dsn, "UPDATE {} SET creator = 'nobody' WHERE portal_type = 'Document'")
    sql(dsn, "ALTER TABLE {} ENABLE TRIGGER USER")
    assert different(dsn)[relation] > 0
    with psycopg.connect(dsn) as connection:
        assert counts.repair(connection, relation)
        assert not counts.repair(connection, relation)
    assert different(dsn)[relation] == 0


def test_many_commits_leave_few_changes(portal: Any, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "FOLD_COMMITS", 4)
    page = portal.public["open-now"]
    for number in range(9):
        page.setSubject((f"tag{number}",))
        page.reindexObject(idxs=["Subject"])
        save(portal)
        [(changes,)] = sql(dsn, "SELECT count(*) FROM pgcatalog_count_changes")
        assert changes <= 8
    assert sql(dsn, "SELECT value FROM pgcatalog_counts WHERE n = 0 AND summed IS NOT NULL") == []
    [(tags,)] = sql(dsn, "SELECT count(DISTINCT value) FROM pgcatalog_counts WHERE value ~ '^tag[0-9]$'")
    assert tags == 1


@pytest.mark.parametrize("names", [TABLES, *(pytest.param((name,), marks=pytest.mark.slow) for name in TABLES)])
def test_dump_without_stored_counts_is_counted_in_rows_until_a_rebuild(
    site_with: SiteWith, names: tuple[str, ...]
) -> None:
    dsn = site_with(make_all)
    with psycopg.connect(dsn) as connection:
        connection.execute(f"DROP TABLE {', '.join(names)}")
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        check(portal, are_stored=False)
        create(portal.public, "Document", "saved", subject=("Rot",))
        save(portal)
        check(portal, are_stored=False)
        rebuild(db)
        transaction.begin()
        check(portal)
        assert set(different(dsn).values()) == {0}


@pytest.mark.parametrize(("dumped", "restored"), [([], []), (["--inserts"], []), ([], ["--disable-triggers"])])
def test_data_restored_into_tables_with_triggers_are_counted_once(
    site_with: SiteWith, postgres: Any, tmp_path: Path, dumped: list[str], restored: list[str]
) -> None:
    """Triggers count the restored rows, and their earlier counts are in the dump as well."""
    dsn = site_with(make_all)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        create(portal.public, "Document", "saved", subject=("new",))
        save(portal)
    other, dump = postgres.createdb(f"restored_data{len(dumped)}{len(restored)}"), tmp_path / "dump"
    for what, how in (["--schema-only"], []), (["--data-only", *dumped], restored):
        subprocess.run([postgres._binaries / "pg_dump", "-Fc", *what, "-f", dump, "-d", direct_dsn(dsn)], check=True)
        command = [postgres._binaries / "pg_restore", "--exit-on-error", *how, "-d", direct_dsn(other), dump]
        subprocess.run(command, check=True)
    assert set(different(other).values()) == {0}
    with sites.opened(other) as db, sites.inside(db) as portal:
        check(portal)
