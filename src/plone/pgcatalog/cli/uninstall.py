"""``pgcatalog uninstall``: a site gets Plone's own catalog back, filled in batches beside ours."""

from plone.pgcatalog.cli.install import say
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.migration import successor
from rich.console import Console
from rich.progress import Progress
from typing import Any

import click
import time
import transaction


PROFILE = "profile-plone.pgcatalog:uninstall"
#: How often the last transaction is tried when others change the catalog meanwhile.
ATTEMPTS = 5


@click.command()
@needs_site
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--abandon", is_flag=True, help="Forget what an interrupted uninstallation has filled, and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def uninstall(zope_conf: str, site: str, dry_run: bool, abandon: bool, as_json: bool) -> None:
    """Give a site Plone's own catalog back: fill it in batches, then switch to it in one transaction.

    Our catalog answers meanwhile, and changes are followed.  An interrupted uninstallation is resumed by the same command.

    Exit code 0: done; 2: it cannot be done, and the site's catalog is as it was.
    """
    with open_site(zope_conf, site) as portal:
        tool = portal.portal_catalog
        if abandon:
            done = successor.abandon(tool)
            say({"abandoned": done}, "what was filled is forgotten" if done else "none was interrupted", as_json)
            return
        if dry_run:
            begun = successor.successor_of(tool)
            known = 0 if begun is None else len(begun._catalog.uids)
            counts = {"objects": len(successor.paths_of(tool)), "done": known}
            say(counts, "would catalogue {objects} objects, {done} are done".format(**counts), as_json)
            return
        started = time.monotonic()
        count = fill(tool)
        switch(portal)
        seconds = time.monotonic() - started
    data = {"objects": count, "seconds": round(seconds, 3)}
    say(data, f"{count} objects catalogued by Plone's own catalog in {seconds:.1f} s", as_json)


def fill(tool: Any) -> int:
    """Fill the successor of *tool* with a progress bar; return how many paths it knows."""
    total = 0
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Cataloguing", total=None)
        for done, total in successor.fill_in_batches(tool, successor.begin(tool)):
            progress.update(task, completed=done, total=total)
    return total


def switch(portal: Any) -> None:
    """Let the successor take its place, and commit; raises what a commit raises when others are faster five times."""
    for attempt in transaction.manager.attempts(ATTEMPTS):
        with attempt as txn:
            txn.note("catalog: uninstalled")
            portal.portal_setup.runAllImportStepsFromProfile(PROFILE)
