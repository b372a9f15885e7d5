"""``pgcatalog searches``: the most frequent searches of visitors, and their replay with other settings."""

from collections.abc import Iterator
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.cli.target import prints_result
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.discovery.replay import frequent_searches
from plone.pgcatalog.discovery.replay import Replay
from plone.pgcatalog.discovery.replay import replay
from plone.pgcatalog.fulltext.tuning import LineError
from plone.pgcatalog.fulltext.tuning import problems
from plone.pgcatalog.fulltext.tuning_file import read_file
from plone.pgcatalog.i18n import english
from plone.pgcatalog.observe.search_lists import SearchCount
from rich.table import Table
from typing import Any

import click


class TuningFile(click.File):
    """A text file of tuning; converted to setting -> its lines."""

    name = "tuning file"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        text = super().convert(value, param, ctx)
        try:
            settings = read_file(text.read())
        except (LineError, UnicodeDecodeError) as error:
            self.fail(english(error.message) if isinstance(error, LineError) else f"{value!r} is not UTF-8", param, ctx)
        wrong = [
            f"[{name}] {english(problem)}" for name, lines in settings.items() for problem in problems(name, lines)
        ]
        if wrong:
            self.fail("\n".join(wrong), param, ctx)
        return settings


@click.command()
@needs_site
@click.option(
    "--replay",
    "settings",
    type=TuningFile(encoding="utf-8"),
    help="Compare the hits with those by the tuning in this file.",
)
@click.option(
    "--seconds",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Time after which no further search is replayed.",
)
@prints_result
def searches(zope_conf: str, site: str, settings: dict[str, str] | None, seconds: float) -> Result:
    """Show the 50 most frequent searches of the last four weeks, and with --replay what other tuning changes.

    The searches are those of anonymous visitors, and so are the hits.  Nothing is saved.

    Exit code 0: shown; with --replay, 1: hits change; 2: the site cannot be opened, or the file cannot be read.
    """
    with open_site(zope_conf, site) as portal:
        counted = frequent_searches(portal.portal_catalog)
        if settings is None:
            return Result({"searches": [search_data(search) for search in counted]}, [search_table(counted)])
        found = replay(portal, portal.REQUEST, counted, settings, seconds)
    data = [
        search_data(search.counted)
        | {
            "first": search.has_other_first,
            "five": search.has_other_five,
            "hits": [search.before.total, search.after.total],
        }
        for search in found.searches
    ]
    changes = {"figures": found.figures(), "left": found.left, "searches": data}
    return Result(changes, replay_lines(found), 1 if found.changed else 0)


def search_data(search: SearchCount) -> dict[str, Any]:
    return {"words": search.words, "count": search.searches, "without_results": search.without_results}


def search_table(counted: list[SearchCount]) -> Table:
    table = Table("words")
    for heading in ("searches", "without results"):
        table.add_column(heading, justify="right")
    for search in counted:
        table.add_row(search.words, str(search.searches), str(search.without_results))
    return table


def replay_lines(found: Replay) -> Iterator[str | Table]:
    if found.changed:
        table = Table("words")
        for heading in ("searches", "first hit", "first five", "hits"):
            table.add_column(heading, justify="right")
        for search in found.changed:
            totals = dict.fromkeys((search.before.total, search.after.total))
            marks = ("other" if changed else "same" for changed in (search.has_other_first, search.has_other_five))
            table.add_row(search.counted.words, str(search.counted.searches), *marks, " → ".join(map(str, totals)))
        yield table
    figures = found.figures()
    yield (
        f"{figures['searches']} searches: {figures['first']} with another first hit, {figures['five']} with other first"
        f" five hits, {figures['total']} with another number of hits"
    )
    if found.left:
        yield f"{found.left} searches were not compared for lack of time."
