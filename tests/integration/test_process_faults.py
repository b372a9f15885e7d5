"""A Zope process killed in the middle of a commit: what was acknowledged is there, the rest is whole or absent."""

from plone.pgcatalog.indexing.verify import Verifier
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.dying_process import prepare
from tests.integration.fixtures import SiteWith
from typing import Any
from zope.component.hooks import setSite

import json
import pytest
import signal
import subprocess
import sys
import transaction


pytestmark = pytest.mark.slow


COMMITTED = {
    "tpc_vote, before the writer": False,
    "tpc_vote, after the writer": False,
    "tpc_finish, before COMMIT": False,
    "tpc_finish, after COMMIT": True,
}
BEFORE = {
    "/plone/acknowledged": ("", "private"),
    "/plone/deleted": ("title of deleted", "private"),
    "/plone/edited": ("title of edited", "private"),
    "/plone/tree": ("", "private"),
    "/plone/tree/leaf": ("", "private"),
}
AFTER = {
    "/plone/acknowledged": ("", "private"),
    "/plone/born": ("", "private"),
    "/plone/edited": ("another title", "published"),
    "/plone/renamed": ("", "private"),
    "/plone/renamed/leaf": ("", "private"),
}


@pytest.fixture(scope="module")
def killed(site_with: SiteWith) -> dict[str, str]:
    """moment -> dsn of a site one of whose processes was killed at that moment."""
    dsns = {moment: site_with(prepare) for moment in COMMITTED}
    command = [sys.executable, "-W", "ignore", "-m", "tests.integration.dying_process"]
    done = subprocess.run(command, input=json.dumps(dsns), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(dsns, signal.SIGKILL), done.stderr
    return dsns


def catalogued(portal: Any) -> dict[str, tuple[str, str]]:
    """Return path -> (title, state) of what the catalog finds."""
    brains = portal.portal_catalog.unrestrictedSearchResults(portal_type=["Document", "Folder"])
    return {brain.getPath(): (brain.Title, brain.review_state) for brain in brains}


def stored(portal: Any) -> set[str]:
    """Return the paths of the documents and folders there are."""
    found, todo = set(), [portal]
    while todo:
        for obj in todo.pop().objectValues(("Dexterity Item", "Dexterity Container")):
            found.add("/".join(obj.getPhysicalPath()))
            todo += [obj] if hasattr(obj, "objectValues") else []
    return found


@pytest.mark.parametrize(("moment", "committed"), COMMITTED.items())
def test_a_process_killed_in_a_commit_leaves_all_of_it_or_nothing(
    killed: dict[str, str], moment: str, committed: bool
) -> None:
    expected = AFTER if committed else BEFORE
    with sites.opened(killed[moment]) as db, sites.application(db) as app:
        sites.login(app)
        setSite(app.plone)
        portal = app.plone
        assert catalogued(portal) == expected
        assert stored(portal) == set(expected)
        assert [str(d) for d in Verifier(portal.portal_catalog).differences()] == []
        # The dead process holds no lock: others go on.
        create(portal, "Document", "later")
        transaction.commit()
        assert catalogued(portal).keys() == expected.keys() | {"/plone/later"}
        assert [str(d) for d in Verifier(portal.portal_catalog).differences()] == []
