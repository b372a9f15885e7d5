"""The records of the soak's clients: acknowledged writes, and the resulting state to be expected at the end."""

from collections.abc import Iterable
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import json
import time


@dataclass(frozen=True)
class Version:
    """A state of an object: path (below the site; None if it does not exist), title and review state."""

    path: str | None
    title: str = ""
    state: str = "private"


ABSENT = Version(None)


@dataclass(eq=False)
class Page:
    """An object that one client writes, with every version it may have.

    - ``possible``: one version if the last write was acknowledged; several if it was not, and may have happened.
    - ``past``: its former versions; a failover may restore one.
    - ``repeated``: the results of the last write on those: Zope repeats a request that the failover interrupts, on whatever
      version is left.
    - ``written``: the time at which the last write was answered; ``carried``: the same for the last write of a folder in which
      a former version was.
    - ``word``: a word that only its file contains; "" for a page without a file.
    - ``events``: its creation, writes without an acknowledgement and look-ups after these, with the time of the clock.
    """

    uid: str | None
    possible: list[Version] = field(default_factory=list)
    past: list[Version] = field(default_factory=list)
    repeated: list[Version] = field(default_factory=list)
    written: float = 0.0
    carried: float = 0.0
    word: str = ""
    events: list[str] = field(default_factory=list)

    def note(self, event: str) -> None:
        """Add *event*, with the time that Zope's logs have."""
        self.events.append(f"{time.strftime('%H:%M:%S')} {event}")

    @property
    def version(self) -> Version:
        """The last acknowledged version."""
        return self.possible[0]

    @property
    def certain(self) -> bool:
        """Whether every write so far was acknowledged."""
        return len(self.possible) == 1


def save(path: Path, pages: Iterable[Page]) -> None:
    """Write *pages* to a file."""
    path.write_text(json.dumps([asdict(page) for page in pages]))


def load(path: Path) -> list[Page]:
    """Read pages written by ``save``."""
    pages = json.loads(path.read_text("utf-8"))
    return [
        Page(page["uid"], [Version(**v) for v in page["possible"]], word=page["word"], events=page["events"])
        for page in pages
    ]


def word(title: str) -> str:
    """Return the word of a title that no other title has."""
    return title.rpartition(" ")[2]


Seen = dict[str, tuple[str, Version]]


def compare(site: Any, area: str, pages: list[Page]) -> dict[str, Any]:
    """Compare *pages* with the objects and the catalog's rows below *area* of *site*.

    Returns the ``lost`` and the ``phantom`` ones, each a list of lines, and the number of compared pages.
    """
    objects, rows = _objects(site[area]), _rows(site, area)
    lost = [f"{path}: an object, but no row that agrees" for path in objects if rows.get(path) != objects[path]]
    phantom = [f"{path}: a row without an object" for path in rows.keys() - objects.keys()]
    by_uid = dict(objects.values())
    known = set()
    for page in pages:
        expected = {v.path for v in page.possible}
        actual = by_uid.get(page.uid, ABSENT) if page.uid else _at(objects, expected)
        known.add(actual.path)
        if actual not in page.possible:
            kind = phantom if expected == {None} else lost
            kind.append(f"{page.uid}: {actual} instead of {page.possible}")
        elif actual.path:
            words = [word(actual.title), page.word] if page.word else [word(actual.title)]
            lost += [f"{actual.path}: not found by {each!r}" for each in words if _found(site, each) != [actual.path]]
    for path in objects.keys() - known:
        name = path.rpartition("/")[2]
        requests = [event for page in pages if any(name in event for event in page.events) for event in page.events]
        phantom.append(f"{path}: no acknowledged request has made it; {'; '.join(requests)}")
    return {"compared": len(pages), "lost": lost, "phantom": phantom}


def _at(objects: Seen, paths: set[str | None]) -> Version:
    for path in paths:
        if path in objects:
            return objects[path][1]
    return ABSENT


def _objects(area: Any) -> Seen:
    """Return path -> (uid, version) of everything in the folders of *area*, read from the objects."""
    from plone.uuid.interfaces import IUUID

    workflow = area.portal_workflow
    found = {}
    todo = [obj for folder in area.objectValues() for obj in folder.objectValues()]
    while todo:
        obj = todo.pop()
        path = _relative("/".join(obj.getPhysicalPath()))
        found[path] = (IUUID(obj), Version(path, obj.title, workflow.getInfoFor(obj, "review_state", "")))
        todo += getattr(obj, "objectValues", list)()
    return found


def _rows(site: Any, area: str) -> Seen:
    """Return the same, read from the catalog."""
    root = "/".join(site.getPhysicalPath())
    brains = site.portal_catalog.unrestrictedSearchResults(path=f"{root}/{area}")
    rows = ((_relative(b.getPath()), b) for b in brains)
    return {path: (b.UID, Version(path, b.Title, b.review_state or "")) for path, b in rows if path.count("/") > 1}


def _found(site: Any, text: str) -> list[str]:
    brains = site.portal_catalog.unrestrictedSearchResults(SearchableText=text)
    return [_relative(brain.getPath()) for brain in brains]


def _relative(path: str) -> str:
    """Return a path of the database relative to the site."""
    return path.split("/", 2)[2]
