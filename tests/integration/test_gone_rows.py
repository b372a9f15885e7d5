"""Rows that the database has lost without a commit, with their objects: by a pack beside saves, or damage from outside."""

from Acquisition import Implicit
from collections.abc import Callable
from plone.pgcatalog.results.brain import brain_class
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.rows import Row
from Products.ZCatalog.CatalogBrains import NoBrainer
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.web import MANAGER
from tests.integration.web import Web
from transaction.interfaces import TransientError
from typing import Any

import Missing
import psycopg
import pytest
import transaction


#: What asks a brain for something that only its row tells.
TOUCHES: dict[str, Callable[[Any], Any]] = {
    "an attribute": lambda brain: brain.Title,
    "an attribute that a site has not": lambda brain: brain.UID,
    "an item": lambda brain: brain["Title"],
    "all values": list,
    "the path": lambda brain: brain.getPath(),
    "the address": lambda brain: brain.getURL(),
    "the object": lambda brain: brain.getObject(),
    "the object, unrestricted": lambda brain: brain._unrestrictedGetObject(),
}


@pytest.mark.parametrize("touch", TOUCHES)
@pytest.mark.parametrize("sort", [{"sort_on": "getId"}, {"sort_on": "path"}, {}])
def test_a_row_that_is_gone_gives_nothing_of_the_site(dsn: str, touch: str, sort: dict[str, str]) -> None:
    """An answer in the cache lists it: a KeyError as ZCatalog's, for which a request is repeated, and then it is not there."""
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            for number in range(3):
                create(portal, "Document", f"page{number}", title=f"Page {number}")
            transaction.commit()
            oid = int.from_bytes(portal.page1._p_oid)
        query = {"portal_type": "Document"} | sort
        with sites.inside(db) as portal:
            assert len([b.Title for b in portal.portal_catalog.unrestrictedSearchResults(query)]) == 3
        with psycopg.connect(dsn) as connection:
            connection.execute("DELETE FROM object_state WHERE zoid = %s", [oid])
        result_cache().clear(ROWS)
        with sites.inside(db) as portal:
            results = portal.portal_catalog.unrestrictedSearchResults(query)
            brains = list(results)
            # Reading one row reads its neighbours; what is asked again is known then.
            assert [brain.Title for brain in brains if brain.getRID() != oid] == ["Page 0", "Page 2"]
            gone = [
                brain for brain in (*brains, *results[:3], results[0], results[1], *results) if brain.getRID() == oid
            ]
            for brain in gone:
                for _ in range(2):
                    with pytest.raises(KeyError) as raised:
                        TOUCHES[touch](brain)
                    assert isinstance(raised.value, TransientError)
        with sites.inside(db) as portal:
            found = portal.portal_catalog.unrestrictedSearchResults(query)
            assert sorted(brain.Title for brain in found) == ["Page 0", "Page 2"]
            assert len(found) == found.actual_result_count == 2


def test_a_request_for_a_row_that_is_gone_is_repeated(dsn: str) -> None:
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            for number in range(3):
                create(portal, "Document", f"page{number}", title=f"Page {number}")
            transaction.commit()
            oid = int.from_bytes(portal.page1._p_oid)
        web = Web(db)

        def titles() -> list[str]:
            query = {"portal_type": "Document", "sort_on": "getId"}
            answer = web.get("/plone/@search", MANAGER, "application/json", **query)
            assert answer.status == 200, answer.text
            return [item["title"] for item in answer.json["items"]]

        for _ in range(2):
            assert titles() == ["Page 0", "Page 1", "Page 2"]
        with psycopg.connect(dsn) as connection:
            connection.execute("DELETE FROM object_state WHERE zoid = %s", [oid])
        result_cache().clear(ROWS)
        assert titles() == ["Page 0", "Page 2"]


class Site(Implicit):
    def Title(self) -> str:
        return "of the site"


def test_an_error_in_a_value_is_none_of_a_missing_attribute() -> None:
    """Acquisition would answer with what the site has under this name."""
    # What has no idx has no values.
    brain = brain_class(NoBrainer, ("Title",))(None, 1, row=Row("/plone/page", idx=object())).__of__(Site())
    with pytest.raises(RuntimeError, match="Title"):
        brain.Title  # noqa: B018
    with pytest.raises(RuntimeError, match="Title"):
        getattr(brain, "Title", None)


def test_a_row_without_metadata_is_not_gone(dsn: str) -> None:
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            create(portal, "Document", "page", title="Page")
            transaction.commit()
            oid = int.from_bytes(portal.page._p_oid)
        with psycopg.connect(dsn) as connection:
            connection.execute("UPDATE object_state SET idx = NULL WHERE zoid = %s", [oid])
        with sites.inside(db) as portal:
            [brain] = portal.portal_catalog.unrestrictedSearchResults(getId="page")
            assert (brain.Title, brain.getPath()) == (Missing.Value, "/plone/page")
