"""A script for ``zconsole run``: creates, queries or upgrades the site *plone*, with any installed version of the package.

It uses Plone only, so that it runs with every version.  Its last line is JSON: the requested result.
"""

from datetime import datetime
from datetime import UTC
from typing import Any
from zope.component.hooks import setSite

import json
import plone.pgcatalog
import sys
import transaction


PROFILE = "plone.pgcatalog:default"
PAGES = 12
#: Typical queries of managers and visitors: by words, values, paths, dates, and in an order.
QUERIES: tuple[dict[str, Any], ...] = (
    {"SearchableText": "hedgehog"},
    {"SearchableText": "hedgehogs AND NOT winter"},
    {"SearchableText": '"garden 3"', "sort_on": "getId"},
    {"portal_type": ["Document", "Event"], "sort_on": "sortable_title", "sort_order": "reverse", "b_size": 5},
    {"Subject": {"query": ["Igel", "Winter"], "operator": "and"}},
    {"path": {"query": "/plone/folder", "depth": 1}, "sort_on": "getObjPositionInParent"},
    {"end": {"query": datetime(2020, 1, 1), "range": "min"}, "sort_on": "start"},
    {"review_state": "private", "sort_on": "getId"},
    {"Title": "Garten*", "sort_on": "getId"},
)
TIMES = {"start": datetime(2026, 5, 1, 10, tzinfo=UTC), "end": datetime(2026, 5, 1, 12, tzinfo=UTC)}
COLUMNS = ("Title", "Description", "Subject", "review_state", "start", "created", "UID", "is_folderish")


def fill(portal: Any) -> None:
    """Create a folder with pages and events; some are published, and two are changed or deleted after their first save."""
    from plone.dexterity.utils import createContentInContainer
    from Products.CMFCore.indexing import processQueue

    portal.portal_workflow.setDefaultChain("simple_publication_workflow")
    add = createContentInContainer
    folder = add(portal, "Folder", id="folder", title="Gärten", checkConstraints=False)
    for number in range(PAGES):
        page = add(
            folder,
            "Event" if number % 4 == 0 else "Document",
            id=f"page-{number:02}",
            title=f"Garden {number}" if number % 2 else f"Garten {number}",
            description="Hedgehogs sleep in winter" if number % 3 else "A hedgehog eats slugs",
            subject=("Igel", "Winter") if number % 3 else ("Igel",),
            checkConstraints=False,
            # Plone's own default is the next full hour at the time of the call.
            **(TIMES if number % 4 == 0 else {}),
        )
        if number % 5:
            portal.portal_workflow.doActionFor(page, "publish")
    processQueue()
    transaction.commit()
    folder["page-01"].title = "Renamed by hedgehogs"
    folder["page-01"].reindexObject()
    folder.manage_delObjects(["page-02"])
    transaction.commit()


def answers(portal: Any) -> list[Any]:
    """Return the hits of each of the QUERIES for a manager, and for anonymous: number, paths and metadata."""
    from AccessControl.SecurityManagement import noSecurityManager

    catalog = portal.portal_catalog
    found = []
    for method in (catalog.unrestrictedSearchResults, catalog.searchResults):
        for query in QUERIES:
            results = method(**query)
            brains = [[brain.getPath(), *(getattr(brain, name) for name in COLUMNS)] for brain in results]
            if "sort_on" not in query:
                brains.sort(key=lambda brain: brain[0])
            found.append([results.actual_result_count, brains])
        noSecurityManager()
    return found


def run(portal: Any, step: str) -> Any:
    setup = portal.portal_setup
    if step == "make":
        setup.runAllImportStepsFromProfile(f"profile-{PROFILE}")
        fill(portal)
    elif step == "upgrade":
        setup.upgradeProfile(PROFILE)
        transaction.commit()
    return {
        "package": list(plone.pgcatalog.__path__),
        "profile": int(setup.getLastVersionForProfile(PROFILE)[0]),
        "answers": answers(portal),
    }


if __name__ == "__main__":
    setSite(app.plone)  # type: ignore[name-defined]  # noqa: F821
    # Values of the catalog that JSON cannot represent are compared by their texts.
    print(json.dumps(run(app.plone, sys.argv[-1]), default=str))  # type: ignore[name-defined]  # noqa: F821
