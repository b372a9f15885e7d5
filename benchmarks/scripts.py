"""Worker of ``scripts``: many changes in one transaction, such as moves with searches in between."""

from benchmarks.backends import vacuum
from benchmarks.content import filled_site
from benchmarks.content import WORKFLOW
from benchmarks.http_load import cpu
from benchmarks.http_load import server_cpu
from benchmarks.scenarios import touch_page
from benchmarks.timing import profiled
from benchmarks.timing import summary
from benchmarks.worker import Progress
from benchmarks.zope_site import PloneSite
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import batched
from itertools import islice
from time import perf_counter
from typing import Any

import psutil
import psycopg
import transaction


#: Number of documents in the tree; all of the site if it has fewer.
TREE_SIZE = 500
MOVES = 300
COPIES = 150
#: Number of documents that fit into Zope's clipboard.
CLIPBOARD = 20
TREE, TARGET = "tree", "target"
READER = "somebody"
#: Workflow state -> transition that is executed.
CHANGES = {"published": "retract", "private": "publish", "pending": "publish"}


@dataclass(frozen=True)
class Script:
    """``run(site)`` changes content, and its transaction is committed; ``undo(site)`` prepares the next round."""

    name: str
    run: Callable[[Any], object]
    undo: Callable[[Any], object] = lambda site: None


def documents(site: Any) -> Iterator[Any]:
    """Yield the documents of the tree, and of the target."""
    for folder in (*site[TREE].objectValues(), site[TARGET]):
        yield from folder.objectValues()


def move(site: Any) -> None:
    """Move documents of the tree into one folder, and search there after each."""
    source = [document for document in documents(site) if document.aq_parent.getId() != TARGET][:MOVES]
    for document in source:
        site[TARGET].manage_pasteObjects(document.aq_parent.manage_cutObjects([document.getId()]))
        listing(site)


def move_back(site: Any) -> None:
    """Move the content of the target into the tree."""
    first = site[TREE].objectValues()[0]
    for ids in batched(site[TARGET].objectIds(), CLIPBOARD):
        first.manage_pasteObjects(site[TARGET].manage_cutObjects(ids))


def listing(site: Any) -> None:
    """Show the first documents of the target."""
    path = {"query": "/".join(site[TARGET].getPhysicalPath()), "depth": 1}
    touch_page(site.portal_catalog(path=path, sort_on="sortable_title"))


def change_states(site: Any) -> None:
    """Publish or retract all documents of the tree."""
    workflows = site.portal_workflow
    for document in documents(site):
        workflows.doActionFor(document, CHANGES[workflows.getInfoFor(document, "review_state", wf_id=WORKFLOW)])


def share(site: Any) -> None:
    """Add a local role on the tree for a user, or remove it."""
    tree = site[TREE]
    if READER in dict(tree.get_local_roles()):
        tree.manage_delLocalRoles([READER])
    else:
        tree.manage_setLocalRoles(READER, ["Reader"])
    tree.reindexObjectSecurity()


def copy(site: Any) -> None:
    """Copy documents of the tree into the target."""
    for document in islice(documents(site), COPIES):
        site[TARGET].manage_pasteObjects(document.aq_parent.manage_copyObjects([document.getId()]))


def forget_copies(site: Any) -> None:
    """Delete the copies."""
    site[TARGET].manage_delObjects(list(site[TARGET].objectIds()))


SCRIPTS = (
    Script(f"{MOVES} moves, a search after each", move, move_back),
    Script(f"workflow of {TREE_SIZE} documents", change_states),
    Script(f"security of a tree of {TREE_SIZE} documents", share),
    Script(f"{COPIES} copies", copy, forget_copies),
)


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the measures of the scripts of one backend: seconds, and processor time of both processes."""
    place = filled_site(options, progress, PloneSite)
    make_tree(place, options["docs"])
    vacuum(options["dsn"])
    measures = {}
    with profiled(options.get("profile", False)) as (call, report), psycopg.connect(options["dsn"]) as connection:
        postmaster = psutil.Process(connection.info.backend_pid).ppid()
        for script in SCRIPTS:
            if options.get("scripts") and script.name not in options["scripts"]:
                continue
            rounds = []
            for number in range(options["warmup"] + options["iterations"]):
                progress(f"{script.name}, round {number + 1}")
                rounds.append(costs(place, script.run, postmaster, call))
                costs(place, script.undo, postmaster)
            kinds = ("", ", processor time of Zope", ", processor time of PostgreSQL")
            for kind, seconds in zip(kinds, zip(*rounds[options["warmup"] :], strict=True), strict=True):
                measures[script.name + kind] = summary(seconds, "s")
    place.close()
    return {"measures": measures, "profile": report()}


def make_tree(place: PloneSite, count: int) -> None:
    """Move as many folders as have TREE_SIZE documents into one; commits."""
    site = place.enter()
    folders = [folder.getId() for folder in site.objectValues("Dexterity Container")]
    size = -(-TREE_SIZE * len(folders) // max(count, TREE_SIZE))
    for name in (TREE, TARGET):
        site.invokeFactory("Folder", name, title=name)
    site[TREE].manage_pasteObjects(site.manage_cutObjects(folders[:size]))
    transaction.commit()
    place.end_request()


def costs(
    place: PloneSite,
    action: Callable[[Any], object],
    postmaster: int,
    call: Callable[..., Any] = lambda action, *arguments: action(*arguments),
) -> tuple[float, float, float]:
    """Return the seconds of *action* in a separate request, commit included, and the processor times of both processes."""
    site = place.enter()
    own = psutil.Process()
    started = perf_counter(), cpu(own), server_cpu(postmaster)
    call(committed, action, site)
    ended = perf_counter(), cpu(own), server_cpu(postmaster)
    place.end_request()
    seconds, zope, postgresql = (after - before for before, after in zip(started, ended, strict=True))
    return seconds, zope, postgresql


def committed(action: Callable[[Any], object], site: Any) -> None:
    """Run *action* and commit."""
    action(site)
    transaction.commit()
