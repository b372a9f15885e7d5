"""Recurring events in sites of several time zones: by REST, in Classic UI, with their portlet, and after an uninstallation."""

from pathlib import Path
from plone.app.event.portlets import portlet_events
from plone.pgcatalog.compat.catalog import _CatalogCompat
from plone.pgcatalog.migration import copying
from plone.portlets.interfaces import IPortletAssignmentMapping
from plone.portlets.interfaces import IPortletManager
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration import stored_values
from tests.integration.fixtures import SiteWith
from tests.integration.people import add_users
from tests.integration.web import MANAGER
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from ZODB.FileStorage import FileStorage
from zodb_pgjsonb.storage import PGJsonbStorage
from zope.component import getMultiAdapter
from zope.component import getUtility

import json
import psycopg
import pytest
import transaction
import zodb_json_codec


ZONES = (
    "UTC",
    pytest.param("Europe/Berlin", marks=pytest.mark.slow),
    pytest.param("America/Sao_Paulo", marks=pytest.mark.slow),
)
EVENT = {
    "@type": "Event",
    "id": "weekly",
    "title": "Weekly meeting",
    "start": "2036-03-24T09:30:00",
    "end": "2036-03-24T10:30:00",
    "recurrence": "RRULE:FREQ=WEEKLY;COUNT=5\nEXDATE:20360331T093000",
}
PAGES = ("/plone/weekly", "/plone/event_listing", "/plone/weekly/ics_view", "/plone")


def site_in(zone: str) -> Any:
    def fill(portal: Any) -> None:
        add_users(portal)
        registry = getUtility(IRegistry)
        registry["plone.portal_timezone"] = zone
        registry["plone.available_timezones"] = sorted({"UTC", zone})
        manager = getUtility(IPortletManager, name="plone.rightcolumn", context=portal)
        mapping = getMultiAdapter((portal, manager), IPortletAssignmentMapping)
        mapping["coming"] = portlet_events.Assignment(count=5, state=("published", "private"))

    return fill


@pytest.mark.parametrize(
    "is_old", [pytest.param(False, id="stored now"), pytest.param(True, id="stored before", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("zone", ZONES)
def test_recurring_event_of_a_zone_is_shown_changed_and_preserved_by_uninstall(
    site_with: SiteWith, zone: str, is_old: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An event stored earlier is a record of the codec alone."""
    dsn = site_with(site_in(zone))
    stored_values.run("store", dsn)
    with sites.opened(dsn) as db, monkeypatch.context() as patch:
        if is_old:
            decode = zodb_json_codec.decode_zodb_record_for_pg_json
            patch.setattr(zodb_json_codec, "decode_zodb_record_for_pg_json", decode.__wrapped__)
        answer = Web(db).send_json("POST", "/plone", MANAGER, EVENT)
        assert answer.status == 201, answer.text
    if zone == "UTC":
        assert start_of_event(dsn) == (START if is_old else IN_PYTZ)
    # With cold caches: each object comes from the database.
    with sites.opened(dsn) as db:
        shown(Web(db))
        answer = Web(db).patch("/plone/weekly", MANAGER, {"start": "2036-03-24T08:15:00", "end": "2036-03-24T10:30:00"})
        assert answer.status == 204, answer.text
    with sites.opened(dsn) as db:
        shown(Web(db))
        assert Web(db).get("/plone/weekly", MANAGER, accept="application/json").json["start"].startswith("2036-03-24T")
    with sites.opened(dsn) as db, Site(db).inside() as portal:
        portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
        assert not isinstance(portal.portal_catalog._catalog, _CatalogCompat)
        assert [brain.getId for brain in portal.portal_catalog(portal_type="Event")] == ["weekly"]
        transaction.commit()
    with sites.opened(dsn) as db:
        shown(Web(db))
    assert json.loads(stored_values.run("load", dsn)) == {}
    back = str(tmp_path / "Back.fs")
    source, target = PGJsonbStorage(dsn, **sites.STORAGE), FileStorage(back, blob_dir=str(tmp_path / "Back-blobs"))
    copied = copying.SourceStorage(source, sample=500)
    copying.copy(copied, target)
    compared = list(copying.changed(copied, copying.seen(target)))
    source.close()
    target.close()
    assert len(compared) > 1000
    assert [str(change) for change in compared if change] == []
    assert json.loads(stored_values.run("load", back)) == {}


#: The start of the event in a site in UTC, as stored by the codec alone, and by this package.
START = {"@dt": "2036-03-24T09:30:00+00:00"}
IN_PYTZ = {"@dt": "2036-03-24T09:30:00", "@tz": {"name": "UTC", "pytz": ["UTC"]}}


def start_of_event(dsn: str) -> Any:
    with psycopg.connect(dsn) as connection:
        query = "SELECT DISTINCT state -> 'start' FROM object_state WHERE class_name = 'Event' AND state ->> 'id' = 'weekly'"
        [[start]] = connection.execute(query).fetchall()
    return start


def shown(web: Web) -> None:
    """Check that each page of the event, and the portlet with it, is there."""
    for page in PAGES:
        answer = web.get(page, MANAGER, accept="text/html")
        assert answer.status == 200, f"{page}: {answer.status}"
        assert "Weekly meeting" in answer.text, page
    assert "portletItem" in answer.text, "the portlet"
