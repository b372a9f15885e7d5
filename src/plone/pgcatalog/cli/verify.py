"""``pgcatalog verify``."""

from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.observe.jobs import compared
from plone.pgcatalog.observe.jobs import told
from plone.pgcatalog.storage import dsn_of
from rich.console import Console
from rich.progress import Progress
from typing import Any

import click
import json


@click.command()
@needs_site
@click.option("--repair", is_flag=True, help="Mend what differs, in transactions of 500 objects.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def verify(zope_conf: str, site: str, repair: bool, as_json: bool) -> None:
    """Compare the catalog with the content, object by object.

    Exit code 0: no difference (or all mended); 1: differences, each named; 2: the site cannot be opened.
    """
    console = Console(stderr=True)
    with open_site(zope_conf, site) as portal:
        verifier, core = Verifier(portal.portal_catalog), portal.portal_catalog._core
        with told(dsn_of(core.jar), core.zoid, "verify") as lines:
            differences = remaining = collect(verifier, console)
            if repair and differences:
                verifier.mend(differences)
                remaining = collect(Verifier(portal.portal_catalog), console)
            lines.append(compared(verifier.checked, len(differences), len(remaining) if repair else None))
        if is_unfilled(core):
            click.echo(
                "The catalog has no table, or only what was saved since it was lost; pgcatalog rebuild fills it.",
                err=True,
            )
    report(verifier.checked, differences, remaining, as_json)
    raise SystemExit(1 if remaining else 0)


def collect(verifier: Verifier, console: Console) -> list[Any]:
    """Return all differences, showing how far the verification is."""
    total = len(verifier.catalog)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Comparing", total=total)
        verifier.progress = lambda checked: progress.update(task, completed=checked)
        return list(verifier.differences())


def report(checked: int, found: list[Any], remaining: list[Any], as_json: bool) -> None:
    """Print what was compared, found and left."""
    if as_json:
        result = {
            "checked": checked,
            "differences": [{"path": d.path, "kind": d.kind, "names": d.names} for d in found],
            "remaining": len(remaining),
        }
        click.echo(json.dumps(result))
        return
    for difference in found:
        click.echo(str(difference))
    mended = f", {len(found) - len(remaining)} mended" if found and len(remaining) < len(found) else ""
    click.echo(f"{checked} objects compared: {len(found)} differences{mended}")
