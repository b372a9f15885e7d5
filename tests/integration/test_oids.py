"""Rows by the oids of their objects, and in their order: a moved object comes after the others, as in ZCatalog."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from plone import api
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.oids import MAX_OIDS
from plone.pgcatalog.query.oids import NoOid
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import make_all
from tests.integration.people import PEOPLE
from tests.integration.traffic import traced
from typing import Any
from ZODB.utils import p64
from ZODB.utils import u64

import pytest
import transaction


SHARED = make_all


def paths(brains: Any) -> list[str]:
    return [brain.getPath() for brain in brains]


def everything(catalog: Any) -> dict[int, str]:
    """Return zoid -> path of all objects in the catalog."""
    return {u64(brain._unrestrictedGetObject()._p_oid): brain.getPath() for brain in catalog.getAllBrains()}


def test_each_object_is_found_by_its_oid(shared_portal: Any) -> None:
    catalog = shared_portal.portal_catalog
    known = everything(catalog)
    assert len(known) > 20
    for zoid, path in known.items():
        for query in ({"zoid": zoid}, {"zoid": [zoid]}, {"oid": p64(zoid)}, {"oid": (p64(zoid),)}, {"zoid": str(zoid)}):
            assert paths(catalog.unrestrictedSearchResults(query)) == [path]
            assert paths(catalog.unrestrictedSearchResults(path="/plone", **query)) == [path]
        assert catalog.unrestrictedSearchResults(zoid=zoid)[0].getRID() == zoid
        # Both keys together find the intersection.
        assert paths(catalog.unrestrictedSearchResults(zoid=[*known], oid=[p64(zoid)])) == [path]


@pytest.mark.parametrize("user", PEOPLE)
@settings(max_examples=8)
@given(data=st.data())
def test_several_oids_are_found_with_other_criteria(shared_portal: Any, user: Any, data: Any) -> None:
    """Sorted, counted and restricted as any search, for each user."""
    catalog = shared_portal.portal_catalog
    with acting_as(shared_portal, None):
        known = everything(catalog)
    zoids = data.draw(st.lists(st.sampled_from([*known, 1, 2**62, 2**80, -1])))
    wanted = {known[zoid] for zoid in zoids if zoid in known}
    for user_query in ({"path": "/plone"}, {"portal_type": "Document"}, {"SearchableText": "needle"}, {}):
        query = {**user_query, "sort_on": "getId"}
        with acting_as(shared_portal, user):
            visible = paths(catalog(query)) if user_query else paths(catalog(path="/", sort_on="getId"))
            found = catalog(query, zoid=zoids)
            assert paths(found) == [path for path in visible if path in wanted]
            assert len(catalog(query, zoid=set(zoids), b_size=1)) <= 1
            assert catalog(query, zoid=zoids).facets(["portal_type"]).total == len(found)
            trick = catalog(zoid=zoids, allowedRolesAndUsers=["Manager"])
            assert set(paths(trick)) == set(paths(catalog(zoid=zoids)))


def test_search_by_oids_takes_one_statement_and_loads_no_object(shared_portal: Any) -> None:
    catalog, connection = shared_portal.portal_catalog, shared_portal._p_jar
    zoids = list(everything(catalog))
    transaction.begin()
    connection.cacheMinimize()
    assert len(catalog.unrestrictedSearchResults(path="/plone/no")) == 0
    connection.getTransferCounts(clear=True)
    with traced(shared_portal) as traffic:
        assert len([brain.Title for brain in catalog.unrestrictedSearchResults(zoid=zoids[:20])]) == 20
    assert traffic[0].round_trips == 1
    assert connection.getTransferCounts() == (0, 0)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        *(({"zoid": "x"}, "a zoid must be an integer, not 'x'"), ({"zoid": True}, "an integer, not True")),
        *(({"zoid": zoid}, "an integer") for zoid in (1.0, None, {"query": [1]}, "9" * 5000, [b"\0" * 8])),
        *(({"oid": oid}, "an oid must be 8 bytes") for oid in (1, b"\0", "\0" * 8)),
    ],
)
def test_invalid_oid_is_an_error(shared_portal: Any, query: Any, message: str) -> None:
    with pytest.raises(NoOid, match=message):
        shared_portal.portal_catalog(query)


def test_no_oids_find_nothing_and_too_many_are_refused(shared_portal: Any) -> None:
    catalog = shared_portal.portal_catalog
    assert list(catalog(zoid=[])) == list(catalog(oid=())) == list(catalog(zoid=2**63)) == []
    assert len(catalog(zoid=range(MAX_OIDS))) > 0
    with pytest.raises(LimitExceeded, match="limited to 10000 values for zoid"):
        catalog(zoid=range(MAX_OIDS + 1))


def test_objects_created_moved_and_catalogued_again_are_found_at_their_path(filled: Any) -> None:
    portal, catalog = filled, filled.portal_catalog
    page = create(portal, "Document", "page")
    transaction.savepoint(optimistic=True)
    assert paths(catalog(oid=page._p_oid)) == ["/plone/page"]
    portal.manage_renameObject("page", "other")
    page = portal.other
    assert paths(catalog(oid=page._p_oid)) == ["/plone/other"]
    catalog.catalog_object(page, "/plone/elsewhere")
    transaction.commit()
    assert paths(catalog.unrestrictedSearchResults(oid=page._p_oid)) == ["/plone/other"]
    portal.manage_delObjects(["other"])
    assert paths(catalog(oid=page._p_oid)) == []


def test_index_of_that_name_is_queried_instead(shared_filled: Any) -> None:
    portal, catalog = shared_filled, shared_filled.portal_catalog
    catalog.addIndex("zoid", FieldIndex("zoid", extra={"indexed_attrs": "getId"}))
    page = create(portal, "Document", "page")
    transaction.savepoint(optimistic=True)
    assert paths(catalog(zoid="page")) == ["/plone/page"]
    assert paths(catalog(zoid=u64(page._p_oid))) == []
    assert paths(catalog(oid=page._p_oid)) == ["/plone/page"]


def make_folders(portal: Any) -> None:
    for name in ("a", "b"):
        create(portal, "Folder", name)
        for number in range(3):
            create(portal[name], "Document", f"{name}{number}")


@pytest.fixture(params=["dsn", "stock_dsn"], ids=["ours", "ZCatalog"])
def moving(request: pytest.FixtureRequest) -> Any:
    """A site with content; ZCatalog numbers the objects of each ZODB connection in sequence, from a random start."""
    with sites.opened(request.getfixturevalue(request.param)) as db, sites.inside(db) as portal:
        make_folders(portal)
        transaction.commit()
        yield portal


def found(portal: Any, **options: Any) -> list[str]:
    brains = portal.portal_catalog.unrestrictedSearchResults(portal_type="Document", **options)
    return [brain.getId for brain in brains]


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (lambda portal: api.content.move(portal.a.a0, portal.b), ["a1", "a2", "b0", "b1", "b2", "a0"]),
        (lambda portal: api.content.rename(portal.a, "c"), ["b0", "b1", "b2", "a0", "a1", "a2"]),
    ],
    ids=["moved", "renamed"],
)
def test_moved_object_comes_after_the_others(moving: Any, move: Any, expected: list[str]) -> None:
    assert found(moving) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    move(moving)
    assert found(moving) == expected
    # The order is the same for long results, whose record ids are read first, and for single rows.
    results = moving.portal_catalog.unrestrictedSearchResults(portal_type="Document")
    assert [results[i].getId for i in range(len(results))] == expected
    assert sorted(found(moving, sort_on="getId")) == found(moving, sort_on="getId")


def test_object_created_in_the_same_transaction_is_no_exception(moving: Any) -> None:
    create(moving.a, "Document", "early")
    create(moving.b, "Document", "late")
    assert found(moving)[-2:] == ["early", "late"]
    before = transaction.savepoint()
    api.content.move(moving.a.early, moving.b)
    assert found(moving)[-2:] == ["late", "early"]
    before.rollback()
    assert found(moving)[-2:] == ["early", "late"]


def test_stream_and_abort_ignore_moves(db: Any) -> None:
    with sites.inside(db) as portal:
        make_folders(portal)
        transaction.commit()
        before = found(portal)
        api.content.move(portal.a.a0, portal.b)
        stream = portal.portal_catalog.iterate({"portal_type": "Document"}, batch=2)
        assert sorted(brain.getId for brain in stream) == sorted(before)
        transaction.abort()
        assert found(portal) == before
