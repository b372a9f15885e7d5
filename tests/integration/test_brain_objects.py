"""A brain returns its object to the same users as one of ZCatalog, and the same error to others."""

from tests.integration.oracle import outcome
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import make_content
from tests.integration.people import PEOPLE
from typing import Any

import pytest
import transaction


def fill(portal: Any) -> None:
    add_users(portal)
    make_content(portal)


SHARED = fill


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize("path", ["/plone/closed/draft-now", "/plone/closed/open-now", "/plone/public/draft-now"])
@pytest.mark.parametrize("removed", [None, "/plone/closed/open-now", "/plone/closed"])
def test_brain_returns_its_object_or_the_same_error(compared: Any, user: Any, path: str, removed: Any) -> None:
    ours, oracle, portal = compared
    brains = [catalog.unrestrictedSearchResults(path={"query": path, "depth": 0})[0] for catalog in (ours, oracle)]
    savepoint = transaction.savepoint()
    if removed is not None:
        # Without the catalog.
        container, _, name = removed.rpartition("/")
        portal.unrestrictedTraverse(container)._delOb(name)
    try:
        with acting_as(portal, user):
            for method in ("getObject", "_unrestrictedGetObject", "getURL"):
                answers = [outcome(getattr(brain, method)) for brain in brains]
                answers = [a.getPhysicalPath() if hasattr(a, "getPhysicalPath") else a for a in answers]
                assert answers[0] == answers[1], method
    finally:
        savepoint.rollback()
