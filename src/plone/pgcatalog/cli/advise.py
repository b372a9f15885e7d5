"""``pgcatalog advise``: SQL indexes that would help slow queries."""

from plone.pgcatalog.advice import builder
from plone.pgcatalog.advice.advice import Advice
from plone.pgcatalog.advice.advice import AdviceError
from plone.pgcatalog.advice.advice import advise as find_advice
from plone.pgcatalog.advice.builder import BuildError
from plone.pgcatalog.advice.builder import IndexTarget
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.i18n import english
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from typing import Any

import click
import json


@click.command()
@needs_site
@click.option("--apply", "build", is_flag=True, help="Build the suggested indexes, one by one, and wait.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def advise(zope_conf: str, site: str, build: bool, as_json: bool) -> None:
    """Suggest SQL indexes for the recorded slow queries; each suggestion has been tested.

    Exit code 0: there is nothing left to suggest; 1: there is, or no advice is possible; 2: the site cannot be opened.
    """
    try:
        with open_site(zope_conf, site) as portal:
            catalog = portal.portal_catalog._core
            advice = find_advice(catalog)
            target = IndexTarget.of(catalog)
    except (AdviceError, BuildError) as error:
        raise click.ClickException(str(error)) from error
    # The site is closed: building waits for older snapshots.
    built = apply(advice, target) if build else {}
    if as_json:
        click.echo(json.dumps(as_data(advice, built), ensure_ascii=False))
    else:
        show(advice, built)
    left = [s for s in advice.suggestions if built.get(s.candidate.name) != ""]
    raise SystemExit(1 if left else 0)


def apply(advice: Advice, target: IndexTarget) -> dict[str, str]:
    """Build all suggested indexes; return by name why one was not built, '' for those that were."""
    outcome = {}
    for suggestion in advice.suggestions:
        candidate = suggestion.candidate
        if candidate.name in outcome:
            continue
        try:
            builder.register(target, candidate, f"{suggestion.group.shape} ({suggestion.group.operation})")
            builder.build(target, candidate.name)
            outcome[candidate.name] = ""
        except BuildError as error:
            outcome[candidate.name] = str(error)
    return outcome


def as_data(advice: Advice, built: dict[str, str]) -> dict[str, Any]:
    """Return *advice* as JSON data."""
    return {
        "method": english(advice.method),
        "rows": advice.rows,
        "suggestions": [
            {
                "name": s.candidate.name,
                "kind": s.candidate.kind,
                "ddl": s.ddl,
                "shape": s.group.shape,
                "operation": s.group.operation,
                "gain": s.gain,
                "before": {"cost": s.before.cost, "ms": s.before.ms},
                "after": {"cost": s.after.cost, "ms": s.after.ms},
                "bytes": s.bytes,
                "write_cost": english(s.write_cost),
                "built": s.candidate.name in built and not built[s.candidate.name],
                "error": built.get(s.candidate.name, ""),
            }
            for s in advice.suggestions
        ],
        "without": [
            {"shape": g.shape, "operation": g.operation, "reason": english(reason)} for g, reason in advice.without
        ],
    }


def show(advice: Advice, built: dict[str, str]) -> None:
    """Print *advice* for people."""
    console = Console(soft_wrap=True)
    console.print(f"Method: {english(advice.method)}; the table has {advice.rows:,} rows.")
    for s in advice.suggestions:
        console.print(f"\n[bold]{escape(s.ddl)}[/]")
        console.print(f"  for   {escape(s.group.shape)} ({s.group.operation})")
        console.print(f"  gain  {s.gain:.0%}: {english(s.comparison)}")
        console.print(f"  size  {decimal(s.bytes)}, {escape(english(s.write_cost))}")
        if s.candidate.name in built:
            console.print(f"  [bold]{escape(built[s.candidate.name]) or 'built'}[/]")
    if not advice.suggestions:
        console.print("No further index would help much.")
    for group, reason in advice.without:
        console.print(
            f"\n[dim]{escape(group.shape) or '(everything)'} ({group.operation}): {escape(english(reason))}[/]"
        )
