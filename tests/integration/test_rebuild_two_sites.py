"""A rebuild of one site's catalog, and another site in the same database."""

from plone.pgcatalog.database import statistics
from plone.pgcatalog.indexing.verify import Verifier
from psycopg.rows import dict_row
from tests.integration import site as sites
from tests.integration.rebuilding import rebuilding
from tests.integration.two_sites import enter
from tests.integration.two_sites import oid
from tests.integration.two_sites import relations
from tests.integration.two_sites import root
from tests.integration.two_sites import view
from typing import Any

import psycopg
import pytest
import transaction


@pytest.fixture
def dsn(two_sites_template: str, postgres: Any) -> str:
    return sites.clone(postgres, two_sites_template)


def differences(site: Any) -> list[str]:
    enter(site)
    return [str(d) for d in Verifier(site.portal_catalog).differences()]


def test_the_other_site_neither_notices_nor_takes_part(app: Any, db: Any, dsn: str) -> None:
    """Also with objects of each catalogued in the other, and edits in both meanwhile."""
    plone, second = app.plone, app.second
    enter(second)
    second.portal_catalog.catalog_object(plone.folder.page, f"{root(plone)}/folder/page")
    enter(plone)
    plone.portal_catalog.catalog_object(second.folder.page, f"{root(second)}/folder/page")
    transaction.commit()
    untouched = relations(dsn)[oid(plone.portal_catalog)]
    with rebuilding(db, "second") as steps:
        while steps.step() != "replay":
            for site in (plone, second):
                enter(site)
                site.folder.open.title = f"Edited in {steps.phase}"
                site.folder.open.reindexObject()
            transaction.commit()
        enter(plone)
        before = view(plone)
        steps.run()
    transaction.begin()
    assert view(plone) == before
    assert relations(dsn)[oid(plone.portal_catalog)] == untouched
    assert differences(second) == []
    enter(second)
    assert [b.Title for b in second.portal_catalog.unrestrictedSearchResults(getId="open")] == ["Edited in index"]
    (foreign,) = second.portal_catalog.unrestrictedSearchResults(path=root(plone))
    assert (foreign.getPath(), foreign.Title) == (f"{root(plone)}/folder/page", "Needle plone")


def test_both_are_rebuilt_at_once(app: Any, db: Any) -> None:
    with rebuilding(db, "plone") as one, rebuilding(db, "second") as other:
        while {one.phase, other.phase} != {"done"}:
            for steps in (one, other):
                if steps.phase != "done":
                    steps.step()
    transaction.begin()
    assert differences(app.plone) == differences(app.second) == []


def test_a_rebuild_in_one_database_does_not_run_in_another(
    db: Any, dsn: str, two_sites_template: str, postgres: Any
) -> None:
    """The catalogs of both have the same oid, and PostgreSQL shows the locks of all databases."""

    def is_running(where: str, zoid: int) -> Any:
        with psycopg.connect(where, row_factory=dict_row) as connection:
            [found] = statistics.overview(statistics.executing(connection), zoid)["catalogs"]
            return found["rebuild"]["running"]

    other = sites.clone(postgres, two_sites_template)
    with sites.opened(other) as opened, rebuilding(opened, "plone") as interrupted:
        interrupted.step()
    with rebuilding(db, "plone") as steps:
        steps.step()
        zoid = oid(steps.site.portal_catalog)
        assert is_running(dsn, zoid)
        assert not is_running(other, zoid)
