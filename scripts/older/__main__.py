"""Databases of Plone 6.0 and 6.1, made by those, and their way here: ``python -m scripts.older``.

``make`` installs each Plone beside ours, from the lists in this folder, lets it make a site (`scripts.older.site`), and keeps
the databases in one archive for the tests. ``follow`` takes that archive, and writes down in docs/reference/moves.md what
the commands of that page print for them.
"""

from benchmarks.marks import put_between
from collections.abc import Callable
from pathlib import Path
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from scripts.moving import page
from scripts.moving import sources
from scripts.moving.walk import Walk
from scripts.older import archive
from tests.integration import site as sites
from time import monotonic

import click
import subprocess
import tempfile


HERE = Path(__file__).parent
INTRODUCTION = """\
## From Plone 6.0 and 6.1, followed

`python -m scripts.older make` has installed Plone 6.0.13 and 6.1.3, and let each make a site of 29 objects:
pages, files, an image, news, an event, a collection, translations, versions, a working copy, comments, redirects,
a member with a role in one page.
`python -m scripts.older follow` has taken these databases through the page with Plone 6.2, on a busy machine,
in its order and in the other one: storage and catalog first, and `@@plone-upgrade` with this catalog in place."""


@click.group()
def main() -> None:
    """Databases of older Plones."""


@main.command()
@click.argument("uv")
@click.option("--python", multiple=True, default=("6.0=3.11", "6.1=3.12"), show_default=True, help="VERSION=PYTHON")
def make(uv: str, python: tuple[str, ...]) -> None:
    """Make the archive anew; UV is the path of that program."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for version, _, interpreter in (choice.partition("=") for choice in python):
            environment = folder / f"plone-{version}"
            subprocess.run([uv, "venv", "--quiet", "--python", interpreter, environment], check=True)
            command = [uv, "pip", "install", "--quiet", "--python", environment / "bin" / "python"]
            subprocess.run([*command, "--requirement", HERE / f"plone-{version}.txt"], check=True)
            subprocess.run(
                [environment / "bin" / "python", "-W", "ignore", "-m", "scripts.older.site", folder / version],
                cwd=HERE.parents[1],
                check=True,
            )
        archive.pack(folder)


@main.command()
def follow() -> None:
    """Follow the page with each database of the archive, in both orders."""
    sites.start_zope()
    sections = [INTRODUCTION]
    for version in archive.VERSIONS:
        for title, way in (("in the order of the page", in_order), ("upgraded with this catalog in place", in_place)):
            sections += [f"### Plone {version}, {title}", f"```text\n{walked(version, way)}\n```"]
    put_between(page.TRANSCRIPTS, "older", "\n\n".join(sections))


def walked(version: str, way: Callable[[Walk], None]) -> str:
    """Return what an administrator sees who goes that *way* with the database of *version*."""
    with (
        tempfile.TemporaryDirectory() as temporary,
        EmbeddedPostgres(settings={**DEMO_SETTINGS, **page.settings()}) as postgres,
    ):
        folder = Path(temporary)
        archive.unpack(version, folder / "made")
        walk = Walk(folder, postgres, "filestorage", site="plone")
        sources.take_file(folder, folder / "made" / "Data.fs", folder / "made" / "blobs")
        walk.prepare()
        with walk.old_storage():
            way(walk)
        return "\n".join(walk.transcript).strip()


def in_order(walk: Walk) -> None:
    """Plone, storage, catalog."""
    upgrade(walk, lambda: archive.upgraded(sources.file_in(walk.folder, "old")))
    walk.rehearse()
    walk.switch()


def in_place(walk: Walk) -> None:
    """Storage, catalog, Plone."""
    from zodb_pgjsonb.storage import PGJsonbStorage

    for name in ("copy", "install"):
        walk.shell(name)
    upgrade(walk, lambda: archive.upgraded(PGJsonbStorage(dsn=walk.dsn("plone"), cache_warm_pct=0)))
    walk.shell("verify")


def upgrade(walk: Walk, run: Callable[[], tuple[str, str]]) -> None:
    """Upgrade by *run*, which returns the versions of Plone's profile before and after, and write it down."""
    started = monotonic()
    before, after = run()
    walk.transcript += [f"# @@plone-upgrade: from {before} to {after}, {monotonic() - started:.0f} s", ""]


if __name__ == "__main__":
    main()
