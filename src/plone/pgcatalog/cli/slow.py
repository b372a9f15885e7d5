"""``pgcatalog slow``: what the tab *Slow Queries* says, for a terminal."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import ms
from plone.pgcatalog.i18n import percent
from plone.pgcatalog.i18n import when
from plone.pgcatalog.observe.log import Choice
from plone.pgcatalog.observe.log import Example
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import History
from plone.pgcatalog.observe.log import SlowQueryLog
from plone.pgcatalog.observe.plan import deviation
from plone.pgcatalog.observe.plan import reason
from psycopg.rows import tuple_row
from typing import Any

import click
import json
import re


#: Every catalog that has slow queries, with the path of its tool.
CATALOGS = "SELECT catalog, max(path) FROM pgcatalog_slow_queries GROUP BY catalog ORDER BY max(path), catalog"
#: As long as queries are kept.
LONGEST = 30 * 24


class Period(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """A number of hours or days, such as 24h or 7d; becomes hours."""

    name = "period"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        match = re.fullmatch(r"([1-9][0-9]{0,2})([hd])", str(value))
        hours = int(match[1]) * (24 if match[2] == "d" else 1) if match else 0
        if not 0 < hours <= LONGEST:
            self.fail(f"{value!r} is no period such as 24h or 7d, of 30 days at most", param, ctx)
        return hours


@click.command()
@needs_database
@click.option("--since", "hours", type=Period(), help="Only the last hours or days, such as 24h or 7d.")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Number of shapes shown for each catalog.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def slow(dsn: str, hours: int | None, limit: int, as_json: bool) -> None:
    """Slow queries by shape, those first that are slow for the site: when, for which page, why, and an example.

    Exit code 0: there are none; 1: there are; 2: there is no catalog.
    """
    choice = Choice(hours)
    with connected(dsn) as connection:
        cursor = connection.cursor(row_factory=tuple_row)
        found = {}
        for zoid, path in cursor.execute(CATALOGS).fetchall():
            log = SlowQueryLog(lambda query, values: cursor.execute(query, values).fetchall(), zoid)
            history = log.history(choice) if hours else History()
            groups = [(group, log.example(group.newest)) for group in log.groups(limit, choice)]
            if groups:
                found[path] = [(*group, english(deviation(group[0], history, hours))) for group in groups]
    if as_json:
        data = {path: [as_data(*each) for each in shown] for path, shown in found.items()}
        click.echo(json.dumps(data, default=datetime.isoformat))
    else:
        for path, shown in found.items():
            click.echo(f"Slow queries of {path}{period(hours)}; times in ms")
            for each in shown:
                click.echo("\n" + "\n".join(lines(*each)))
        if not found:
            click.echo(f"No slow query is recorded{period(hours)}.")
    raise SystemExit(1 if found else 0)


def period(hours: int | None) -> str:
    return f" in the last {hours} hours" if hours else ""


def as_data(group: Group, example: Example | None, last_week: str) -> dict[str, Any]:
    """Return *group* as JSON data, with the page that asked last, its query, and the reason."""
    page, query = ("", "") if example is None else (example.page, text_of(example))
    return asdict(group) | {"why": english(reason(group)), "last_week": last_week, "page": page, "example": query}


def lines(group: Group, example: Example | None, last_week: str) -> Iterator[str]:
    """Yield the lines about *group*."""
    yield f"{group.count} × {group.operation}: {group.shape or '(everything)'}"
    times = f"median {ms(group.median_ms)}, 95 % {ms(group.p95_ms)}, max {ms(group.max_ms)}"
    yield f"  {times}; {percent(group.share)} of all; last {when(group.last)}"
    marks = [f"{group.long} slow for this site"] if group.long else []
    marks += ["new since the last start"] if group.is_new else []
    marks += [f"last week: {last_week}"] if last_week else []
    if marks:
        yield f"  {', '.join(marks)}"
    yield f"  why: {english(reason(group))}"
    if example is not None:
        yield f"  page: {example.page or '(none: a script or a command)'}"
        yield f"  example: {text_of(example)}"


def text_of(example: Example) -> str:
    # It decodes values of indexes, for which much is imported that commands do without.
    from plone.pgcatalog.observe.record import query_text

    return query_text(example.query)
