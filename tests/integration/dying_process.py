"""Zope processes that kill themselves in the middle of a commit.

``python -m tests.integration.dying_process``, with JSON on stdin: moment of death -> dsn of a site with ``prepare``'s
content.  Prints moment -> signal the process died of.
"""

from collections.abc import Callable
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any

import json
import os
import signal
import sys
import transaction


def prepare(portal: Any) -> None:
    """Create the content that ``change`` changes, and commit."""
    for name in ("edited", "deleted"):
        create(portal, "Document", name, title=f"title of {name}")
    create(portal, "Folder", "tree")
    create(portal.tree, "Document", "leaf")
    transaction.commit()


def change(portal: Any) -> None:
    """Create, edit, publish, delete and rename, without a commit."""
    create(portal, "Document", "born")
    portal.edited.title = "another title"
    portal.edited.reindexObject()
    portal.portal_workflow.doActionFor(portal.edited, "publish")
    portal.manage_delObjects(["deleted"])
    portal.manage_renameObject("tree", "renamed")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def trap(moment: str, action: Callable[[], object]) -> tuple[Any, str, Callable[..., Any]]:
    """Return (class, name, method) with which a commit runs *action* at *moment*."""
    from plone.pgcatalog.indexing.processor import PGCatalogStateProcessor
    from zodb_pgjsonb.instance import PGJsonbStorageInstance

    votes = moment.startswith("tpc_vote")
    owner, name = (PGCatalogStateProcessor, "finalize") if votes else (PGJsonbStorageInstance, "tpc_finish")
    original = getattr(owner, name)

    def method(self: Any, *args: Any) -> Any:
        if "answer" in moment:
            self._conn.execute("COMMIT")
        if "before" in moment:
            action()
        result = original(self, *args)
        if "after" in moment:
            action()
        return result

    return owner, name, method


def live_and_die(moment: str, dsn: str) -> None:
    """Commit one page, then die in the next commit."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        create(portal, "Document", "acknowledged")
        transaction.commit()
        change(portal)
        setattr(*trap(moment, die))
        transaction.commit()


def main() -> None:
    # Each moment has a process of its own, forked from one that has loaded Zope already.
    sites.start_zope()
    statuses = {}
    for moment, dsn in json.load(sys.stdin).items():
        pid = os.fork()
        if not pid:
            live_and_die(moment, dsn)
            os._exit(1)
        statuses[moment] = os.WTERMSIG(os.waitpid(pid, 0)[1])
    print(json.dumps(statuses))


if __name__ == "__main__":
    main()
