"""Follows the page and records it: ``python -m checks.moving --documents 2000``, with a site in each storage, and back.

Writes the transcripts to ``docs/reference/moves.md``.
"""

from benchmarks.marks import put_between
from checks.moving import page
from checks.moving.walk import Walk
from pathlib import Path
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.acceptance.moves import sources
from tests.integration import site as sites
from typing import Any

import click
import tempfile


SITE = "Plone"
INTRODUCTION = """\
## From ZEO and RelStorage

`python -m checks.moving --documents {documents}` has made a site of {objects:,} objects with all that the test looks for, typed the commands
of the page, and recorded what they print. At both ends it has looked whether all of that content is there.
Paths and hosts are those of the page."""


@click.command()
@click.option("--documents", default=2000, show_default=True, type=click.IntRange(min=1), help="Pages and files.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(list(sources.KINDS)), help="By default ZEO and RelStorage."
)
def main(documents: int, kinds: tuple[str, ...]) -> None:
    """Follow docs/how-to/from-your-site.md with a site of this many documents, and record the output."""
    sites.start_zope()
    transcripts = []
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "data"
        data.mkdir()
        objects = make_site(data, documents)
        for kind in kinds or ("zeo", "relstorage"):
            folder = Path(temporary) / kind
            folder.mkdir()
            # A separate server for each, because the page uses the same names of databases.
            with EmbeddedPostgres(settings={**DEMO_SETTINGS, **page.settings()}) as postgres:
                walk = Walk(folder, postgres, kind)
                follow(walk, data)
            transcripts.append("\n".join([f"### From {sources.KINDS[kind]}", "", "```text", *walk.transcript, "```"]))
    introduction = INTRODUCTION.format(documents=documents, objects=objects)
    put_between(page.TRANSCRIPTS, "transcripts", "\n\n".join([introduction, *transcripts]))


def make_site(folder: Path, documents: int) -> int:
    """Create a FileStorage in *folder* with a site; return the number of objects in its catalog."""
    from tests.acceptance.moves import content

    with sites.opened_in_file(folder) as db:
        sites.create_site_in(db, SITE)
        with opened(db) as portal:
            content.fill(portal, documents)
            return len(portal.portal_catalog)


def opened(db: Any) -> Any:
    """Return the context of the site in *db*, as admin."""
    return sites.inside(db, SITE)


def follow(walk: Walk, data: Path) -> None:
    """Follow the page from the site in *data*, there and back."""
    # Imported here, because they import Plone, which needs the configuration of Zope.
    from plone.pgcatalog.cli.target import main_storage
    from plone.pgcatalog.migration import copying
    from zodb_pgjsonb.storage import PGJsonbStorage

    walk.prepare()
    sources.take_file(walk.folder, walk.layout, data / "Data.fs", data / "blobs")
    if walk.kind == "relstorage":
        walk.create_database("old")
        walk.create_database("back")
        target = main_storage(str(walk.conf())).open()
        copying.copy(copying.SourceStorage(sources.file_in(walk.folder, walk.layout)), target)
        target.close()
    with walk.old_storage():
        walk.rehearse()
        walk.switch()
    complete(PGJsonbStorage(dsn=walk.dsn("plone"), cache_warm_pct=0))
    walk.go_back()
    complete(main_storage(str(walk.conf("back"))).open())


def complete(storage: Any) -> None:
    """Raise AssertionError unless the site in *storage* has all its original content."""
    from tests.acceptance.moves import content

    with sites.opened_on(storage) as db, opened(db) as portal:
        lost = content.lost(portal)
    if lost:
        raise AssertionError(f"lost on the way: {', '.join(lost)}")


if __name__ == "__main__":
    main()
