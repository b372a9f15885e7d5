"""What it takes to change who may see a whole site: by the tab *Sharing*, and by a workflow's permissions:

    .venv/bin/python -m benchmarks.tree_security --docs 10000

Both catalogs take turns.  The result is stored, and put into the page on large sites.
"""

from benchmarks.backends import LABELS
from benchmarks.backends import OURS
from benchmarks.backends import REFERENCE
from benchmarks.content import counted_stores
from benchmarks.content import filled_site
from benchmarks.content import WORKFLOW
from benchmarks.marks import put_between
from benchmarks.running import Job
from benchmarks.running import ResultFile
from benchmarks.running import run_jobs
from benchmarks.scale_costs import log_position
from benchmarks.table import cell
from benchmarks.table import Table
from benchmarks.timing import value
from benchmarks.wire import Relay
from benchmarks.worker import Progress
from benchmarks.worker import ROOT
from benchmarks.zope_site import PloneSite
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import psycopg
import tempfile
import transaction


MEMBER = "mara"
RESULT = ROOT / "benchmarks" / "results" / "tree-security.json"
PAGE = ROOT / "docs" / "explanation" / "scale.md"


def shared(site: Any) -> None:
    """Let a member read the whole site, by the view of its tab *Sharing*."""
    view = site.restrictedTraverse("@@sharing")
    view.update_role_settings([{"id": MEMBER, "type": "user", "roles": ["Reader"]}])


def workflow_updated(site: Any) -> None:
    """Give members what is private, and update the security settings, by the button of the workflow tool."""
    workflow = site.portal_workflow[WORKFLOW]
    for permission in ("View", "Access contents information"):
        workflow.states.private.setPermission(permission, False, ["Manager", "Owner", "Member"])
    site.portal_workflow.updateRoleMappings()


ACTIONS: dict[str, Callable[[Any], None]] = {"sharing": shared, "workflow": workflow_updated}


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the measures of a backend."""
    place = filled_site(options, progress, PloneSite)
    dsn = place.dsn
    site = place.enter()
    site.acl_users.userFolderAddUser(MEMBER, "secret", ["Member"], [])
    transaction.commit()
    measures = {}
    with tempfile.TemporaryDirectory() as folder, Relay(dsn, Path(folder)) as relay, psycopg.connect(dsn) as server:
        server.autocommit = True
        place.close()
        place.dsn = relay.dsn
        place.open()
        for name, action in ACTIONS.items():
            progress(name)
            measures |= measured(place, name, action, relay, server)
        place.close()
    return {"measures": measures}


def measured(
    place: PloneSite, name: str, action: Callable[[Any], None], relay: Relay, server: Any
) -> dict[str, dict[str, Any]]:
    """Return what *action* takes in a request of its own, its commit included."""
    place.cold(anonymous=False)
    site = place.enter()
    sent, received, log, started = *relay.counts(), log_position(server), perf_counter()
    with counted_stores(site) as stores:
        action(site)
        transaction.commit()
    seconds = perf_counter() - started
    after = relay.counts()
    place.leave()
    return {
        f"{name}: time": value(seconds, "s"),
        f"{name}: messages": value(after[0] - sent, ""),
        f"{name}: received": value((after[1] - received) / 2**20, "MB"),
        f"{name}: write-ahead log": value((log_position(server) - log) / 2**20, "MB"),
        f"{name}: objects stored": value(len(stores), ""),
    }


@click.command()
@click.option("--docs", default=10_000, show_default=True, help="Documents in the site.")
@click.option("--cache-size", default=30_000, show_default=True, help="Objects in the ZODB cache of a connection.")
def main(**options: int) -> None:
    """Measure it on both catalogs, beginning with empty caches."""
    file = ResultFile("tree-security", options, RESULT)
    jobs = [Job("benchmarks.tree_security", name, options) for name in (REFERENCE, OURS)]
    data = run_jobs(file, jobs, again=True, in_turn=True)
    found = {name: data["results"][name]["measures"] for name in (REFERENCE, OURS)}
    rows = [
        [f"{name} ({each['unit']})" if each["unit"] else name, cell(each), cell(found[OURS][name])]
        for name, each in found[REFERENCE].items()
    ]
    title = f"{options['docs']:,} documents, {data['date']}"
    put_between(PAGE, "security of a tree", Table(title, ["", LABELS[REFERENCE], LABELS[OURS]], rows).markdown())


if __name__ == "__main__":
    main()
