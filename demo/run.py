"""The steps of the demo after the start of Zope: the site, the tour, the check."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from demo import check
from demo import content
from demo import fetch
from demo import front_page
from demo import plan
from demo import server
from demo import site as sites
from demo import tour
from demo import volto
from demo.words import Item
from rich.console import Console
from typing import Any
from zoneinfo import ZoneInfo

import transaction


Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
Timed = Callable[[str], AbstractContextManager[None]]


class Session:
    """One open connection to the database, acting as admin, with a site to show."""

    def __init__(self, root: Any, console: Console, progress: Progress, timed: Timed, for_volto: bool = False) -> None:
        self.app: Any = sites.published(root)
        self.for_volto = for_volto
        self.console = console
        self.progress = progress
        self.timed = timed
        self.site: Any = None
        sites.ensure_admin(self.app)
        sites.become(self.app, plan.ADMIN)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if self.app is not None:
            sites.close(self.app)
            self.app = self.site = None

    @property
    def today(self) -> datetime:
        """The day on which the site was created."""
        marker = sites.marker(self.site)
        return datetime.fromisoformat(marker["today"]).replace(tzinfo=ZoneInfo(marker.get("zone", plan.ZONE)))

    def find(self) -> None:
        """Find the site.  Raises DemoError if there is none."""
        self.site = sites.find_site(self.app)
        if self.site is None:
            raise server.DemoError("There is no site yet: make demo makes one.")

    def prepare(self, objects: int, zone: str = plan.ZONE) -> None:
        """Find the site or create it, in the time zone *zone*; continue an interrupted run."""
        self.site = sites.find_site(self.app)
        if self.site is None:
            today = datetime.now(ZoneInfo(zone)).date().isoformat()
            with self.timed("Creating the Plone site"):
                self.site = sites.make_site(self.app, zone, today=today, objects=objects, installed=False)
                if self.for_volto:
                    volto.install(self.site)
        marker = sites.marker(self.site)
        if marker["objects"] != objects:
            self.console.print(
                f"The site is there already, with {marker['objects']} objects (another folder of data has another site)."
            )
        if not marker["complete"]:
            self._fill(plan.make_plan(marker["objects"], self.today))

    def _fill(self, items: list[Item]) -> None:
        # The first objects are created with Plone's own catalog, so that the profile finds
        # a catalog with content, as in a site that is in use.
        if self.for_volto:
            items = volto.with_blocks(items)
        before = max(20, len(items) // 10)
        with self.progress("Content, catalog of Plone", before) as advance:
            content.write(self.site, items[:before], advance)
        if not sites.marker(self.site)["installed"]:
            with self.timed(f"Profile {sites.PROFILE}"):
                sites.install(self.site)
        rest = items[before:]
        with self.progress("Content, our catalog", len(rest)) as advance:
            content.write(self.site, rest, advance)
        with self.timed("A day of editing"):
            content.live(self.site, items)
        with self.timed("The front page"):
            if self.for_volto:
                volto.make_pages(self.site)
            else:
                front_page.make(self.site)
            sites.mark(self.site, complete=True)
            content.commit(self.site)

    def tour(self) -> None:
        """Print the answers to ten questions."""
        self.console.print(tour.table(self.site, self.today))

    def check(self) -> list[str]:
        """Compare with a ZCatalog and over HTTP; return the problems."""
        with self.progress("Filling a ZCatalog", len(self.site.portal_catalog)) as advance:
            zcatalog = check.make_oracle(self.site, advance)
        path = "/".join(self.site.getPhysicalPath())
        steps = tour.steps(path, self.today)
        with self.progress("Comparing", len(steps) + 1) as advance:
            differences = check.compare(self.site, zcatalog, steps, advance)
        if differences:
            self.console.print(check.table(differences))
        for title in check.unproven(self.site, zcatalog, steps):
            self.console.print(f"{title} - finds nothing, proves nothing", style="yellow")
        # The oracle must not be stored.
        transaction.abort()
        with self.timed("Looking at it over HTTP"), server.http_server() as url:
            problems = list(fetch.problems(self.site, url))
        if differences:
            problems.append(f"{len(differences)} differences from ZCatalog's answers")
        return problems
