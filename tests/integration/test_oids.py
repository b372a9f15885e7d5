"""Rows by the oids of their objects: brains of relations, and only visible ones."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.oids import MAX_OIDS
from plone.pgcatalog.query.oids import NoOid
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
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


def test_both_keys_together_find_the_intersection(shared_portal: Any) -> None:
    catalog = shared_portal.portal_catalog
    first, second, *_ = everything(catalog)
    found = catalog.unrestrictedSearchResults(zoid=[first, second], oid=[p64(second)])
    assert [brain.getRID() for brain in found] == [second]


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
        ({"zoid": "x"}, "a zoid must be an integer, not 'x'"),
        ({"zoid": True}, "a zoid must be an integer, not True"),
        ({"zoid": 1.0}, "a zoid must be an integer"),
        ({"zoid": None}, "a zoid must be an integer"),
        ({"zoid": {"query": [1]}}, "a zoid must be an integer"),
        ({"zoid": "9" * 5000}, "a zoid must be an integer"),
        ({"zoid": [b"\0" * 8]}, "a zoid must be an integer"),
        ({"oid": 1}, "an oid must be 8 bytes"),
        ({"oid": b"\0"}, "an oid must be 8 bytes"),
        ({"oid": "\0" * 8}, "an oid must be 8 bytes"),
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


def test_objects_created_and_moved_in_the_transaction_are_found(filled: Any) -> None:
    portal, catalog = filled, filled.portal_catalog
    page = create(portal, "Document", "page")
    transaction.savepoint(optimistic=True)
    assert paths(catalog(oid=page._p_oid)) == ["/plone/page"]
    portal.manage_renameObject("page", "other")
    assert paths(catalog(oid=portal.other._p_oid)) == ["/plone/other"]
    oid = portal.other._p_oid
    portal.manage_delObjects(["other"])
    assert paths(catalog(oid=oid)) == []


def test_a_second_path_of_an_object_is_another_row(filled: Any) -> None:
    portal, catalog = filled, filled.portal_catalog
    page = create(portal, "Document", "page")
    transaction.commit()
    catalog.catalog_object(page, "/plone/elsewhere")
    transaction.commit()
    assert paths(catalog.unrestrictedSearchResults(oid=page._p_oid)) == ["/plone/page"]


def test_index_of_that_name_is_queried_instead(filled: Any) -> None:
    portal, catalog = filled, filled.portal_catalog
    catalog.addIndex("zoid", FieldIndex("zoid", extra={"indexed_attrs": "getId"}))
    page = create(portal, "Document", "page")
    transaction.savepoint(optimistic=True)
    assert paths(catalog(zoid="page")) == ["/plone/page"]
    assert paths(catalog(zoid=u64(page._p_oid))) == []
    assert paths(catalog(oid=page._p_oid)) == ["/plone/page"]
