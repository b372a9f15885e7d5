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


def before(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: die()


def after(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: (function(*args), die())


def set_trap(moment: str) -> None:
    """Let the next commit of this process end it at *moment*."""
    from plone.pgcatalog.indexing.processor import PGCatalogStateProcessor
    from zodb_pgjsonb.instance import PGJsonbStorageInstance

    owner: Any
    owner, name, when = {
        "tpc_vote, before the writer": (PGCatalogStateProcessor, "finalize", before),
        "tpc_vote, after the writer": (PGCatalogStateProcessor, "finalize", after),
        "tpc_finish, before COMMIT": (PGJsonbStorageInstance, "tpc_finish", before),
        "tpc_finish, after COMMIT": (PGJsonbStorageInstance, "tpc_finish", after),
    }[moment]
    setattr(owner, name, when(getattr(owner, name)))


def live_and_die(moment: str, dsn: str) -> None:
    """Commit one page, then die in the next commit."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        create(portal, "Document", "acknowledged")
        transaction.commit()
        change(portal)
        set_trap(moment)
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
