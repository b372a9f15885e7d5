"""The soak's clients: each writes, searches and navigates over HTTP, and records acknowledged writes."""

from base64 import b64encode
from checks.soak.ledger import ABSENT
from checks.soak.ledger import Page
from checks.soak.ledger import Version
from checks.soak.ledger import word
from checks.soak.server import AREA
from checks.soak.server import FOLDERS
from checks.soak.server import origin
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace
from demo.documents import PDF
from demo.documents import pdf_of
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import re
import requests
import threading
import time


#: Seconds after which a request counts as unanswered. Zope's pauses before it repeats one six times take up to 63 seconds,
#: and it waits for a connection seven times.
TIMEOUT = 120
#: The error of such a request: a thread of Zope is lost, which no outage excuses.
SILENT = f"no answer in {TIMEOUT} s"
#: A client deletes when it has so many pages, and creates otherwise: with a random choice their number would be a random walk,
#: and the site would grow for ever.
ENOUGH = 30
#: Seconds after a write without an acknowledgement from which its effect is certain: no process does it any more.
CERTAIN_AFTER = 30.0
#: Pages of a file: its text takes a moment to read.
FILE_PAGES = 30
#: Part of the searches that are also by meaning, if the site has an embedder.
BY_MEANING = 0.3
WORDS = ["water", "climate", "energy", "library", "museum", "school", "traffic", "garden"]
FILE = re.compile(r'File "([^"]+)", line (\d+)')

#: Frequency in about a hundred requests.
MIX = {
    "search": 22,
    "search page": 5,
    "look up": 18,
    "navigate": 16,
    "edit": 16,
    "create or delete": 9,
    "workflow": 7,
    "move": 4,
    "rename": 2,
    "move folder": 1,
}
#: Number of times a client repeats a write after Zope's last conflict, as its user would.  All changes of a folder change
#: one list, its order: the move of a folder, of half a minute in a busy moment, has failed after four times.
REPEATS = 8
#: Such writes have certainly changed nothing.
CONFLICTS = ("500 ConflictError", "500 ReadConflictError")
#: Kinds of requests that change something.
WRITES = {"create", "upload", "delete", "edit", "move", "move folder", "rename", "workflow"}

Become = Callable[[Version], Version]


@dataclass
class Answer:
    """A request and its result: *error* is a class of errors, or empty; *repeated* if the client has repeated it then."""

    kind: str
    start: float
    end: float
    error: str
    repeated: bool = False


def error_class(response: requests.Response) -> str:
    """Return the error in one line that is the same for equal causes."""
    if response.status_code < 400:
        return ""
    name = response.headers.get("X-Error", "")
    if not name and "json" in response.headers.get("Content-Type", ""):
        data = response.json()
        # plone.restapi's services put it one level deeper.
        data = data.get("error", data)
        name = str(data.get("type") or data.get("message") or data)[:80]
        frames = [match.groups() for line in data.get("traceback", ()) if (match := FILE.search(line))]
        if frames:
            file, line = frames[-1]
            name += f" in {origin([file for file, _ in frames])}, {Path(file).name}:{line}"
    return f"{response.status_code} {name}".strip()


class Gate:
    """A gate for the clients' actions, one at a time each; while it is closed, all of them rest."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._acting = 0
        self._is_closed = False

    @contextmanager
    def open(self) -> Iterator[None]:
        """Act within the block."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_closed)
            self._acting += 1
        try:
            yield
        finally:
            with self._changed:
                self._acting -= 1
                self._changed.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Run the block while no client acts."""
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._acting)
        try:
            yield
        finally:
            with self._changed:
                self._is_closed = False
                self._changed.notify_all()


class Client:
    """One user in one thread; ``answers`` and ``pages`` record its history.

    *files* is the part of new objects that are files.  With *meaning* some searches are also by meaning.
    """

    def __init__(
        self,
        number: int,
        urls: Sequence[str],
        seeded: Sequence[str],
        seed: int,
        gate: Gate,
        files: float = 0.0,
        meaning: bool = False,
    ) -> None:
        self.number = number
        self.gate = gate
        self.files = files
        self.meaning = meaning
        self.urls = urls
        #: id of the site: paths of the ledger are below it
        self.site = urls[0].rpartition("/")[2]
        self.seeded = [path.split("/", 2)[2] for path in seeded]
        self.rng = Random(f"{seed} {number}")
        self.session = requests.Session()
        self.session.auth = ("admin", "admin")
        self.visitor = requests.Session()
        self.answers: list[Answer] = []
        #: every page created by this client, and those it still uses
        self.pages: list[Page] = []
        self.live: list[Page] = []
        #: pages whose last write had no acknowledgement, in the order of these writes
        self.unknown: list[Page] = []
        self.home: Page | None = None
        #: this page, and those that an outage has made uncertain
        self.folders: list[Page] = []
        #: search answers that contradict an acknowledged write
        self.stale: list[str] = []
        self.problem = ""
        self._count = 0
        self._token = ""
        self._actions: dict[str, Callable[[], None]] = {
            "search": self.search,
            "search page": self.search_page,
            "look up": self.look_up,
            "navigate": self.navigate,
            "edit": self.edit,
            "create or delete": self.create_or_delete,
            "workflow": self.workflow,
            "move": self.move,
            "rename": self.rename,
            "move folder": self.move_folder,
        }

    def run(self, ended: threading.Event) -> None:
        """Act until *ended*; store an error of the client itself in ``problem``."""
        try:
            while not ended.is_set():
                (kind,) = self.rng.choices(list(MIX), list(MIX.values()))
                with self.gate.open():
                    self._actions[kind]()
        except BaseException as error:
            self.problem = f"client {self.number}: {error!r}"
            raise

    # -- requests

    def send(self, kind: str, method: str, path: str, visitor: bool = False, **options: Any) -> Any:
        """Send a request to one of the processes; return the response, None if it failed."""
        url = f"{self.rng.choice(self.urls)}/{path}"
        session = self.visitor if visitor else self.session
        start, response = time.monotonic(), None
        try:
            response = session.request(method, url, timeout=TIMEOUT, **options)
            error = error_class(response)
        except requests.Timeout:
            error = SILENT
        except requests.ConnectionError:
            error = "closed connection"
        self.answers.append(Answer(kind, start, time.monotonic(), error))
        if error:
            time.sleep(0.2)
            return None
        return response

    def api(self, kind: str, method: str, path: str, visitor: bool = False, **options: Any) -> Any:
        return self.send(kind, method, path, visitor, headers={"Accept": "application/json"}, **options)

    def write(self, pages: Sequence[Page], become: Become, kind: str, method: str, path: str, **options: Any) -> Any:
        """Send a write that turns each version of *pages* into *become(version)*; once more after a conflict.

        If acknowledged, the pages have these versions.  Otherwise they may have them, and this client leaves them alone.
        """
        response = self.api(kind, method, path, **options)
        for _ in range(REPEATS):
            if response is not None or not self.answers[-1].error.startswith(CONFLICTS):
                break
            self.answers[-1].repeated = True
            response = self.api(kind, method, path, **options)
        if response is not None and response.history:
            # A failover has moved the object back, to where Plone has redirected the request.
            requested, source, target = become, *difference(path, urlsplit(response.url).path[len(f"/{self.site}/") :])
            become = lambda version: moved(source, target, requested(version))  # noqa: E731
        for page in pages:
            changed = [become(version) for version in page.possible]
            page.repeated = [become(version) for version in page.past]
            page.past += page.possible
            page.written = time.monotonic()
            page.possible = changed if response is not None else [*page.possible, *changed]
            if response is None:
                page.note(f"{kind}: {self.answers[-1].error}")
                self.retire(page)
                self.unknown.append(page)
        return response

    def write_folder(
        self, become: Become, kind: str, method: str, path: str, source: str, **options: Any
    ) -> list[Page]:
        """Send a write of the object *source* with all pages below it, which are returned; see ``write``.

        A failover may have undone that a page has left the folder, and Zope then repeats the request for this page, too.
        """
        pages = self.below(source)
        self.write(pages, become, kind, method, path, **options)
        for page in self.pages:
            if page not in pages and any(is_below(source, version) for version in page.past):
                page.repeated, page.carried = [become(version) for version in page.past], time.monotonic()
        return pages

    def retire(self, page: Page) -> None:
        if page in self.live:
            self.live.remove(page)

    def resolve(self) -> None:
        """Look up the page that had no acknowledgement longest ago; use it again if it exists.

        Otherwise each outage would add pages to the site that no client deletes.
        """
        if not self.unknown or self.unknown[0].written > time.monotonic() - CERTAIN_AFTER:
            return
        page = self.unknown[0]
        paths = [f"/{self.site}/{version.path}" for version in page.possible if version.path]
        where = {"UID": page.uid} if page.uid else {"path.query": paths, "path.depth": 0}
        found = self.found("resolve", where)
        if found is None:
            return
        del self.unknown[0]
        if page in self.unknown:
            return  # a later write of this page had no acknowledgement, either
        uid, actual = found[0] if found else (page.uid, ABSENT)
        page.note(f"looked up: {actual}")
        if actual not in page.possible or len(found) > 1:
            self.stale.append(f"{page} found as {found}")
            return
        page.uid, page.possible = uid, [actual]
        if actual is not ABSENT:
            self.live.append(page)

    # -- reading

    def search(self) -> None:
        visitor = self.rng.random() < 0.5
        if self.meaning and self.rng.random() < BY_MEANING:
            words = " ".join(self.rng.sample(WORDS, 3))
            self.api(
                "search by meaning", "GET", "@pgsearch", visitor, params={"q": words, "mode": "hybrid", "rows": 25}
            )
            return
        query = {"SearchableText": self.rng.choice(WORDS), "b_size": 25, "metadata_fields": "modified"}
        if self.rng.random() < 0.5:
            query |= {"sort_on": "modified", "sort_order": "descending", "portal_type": "Document"}
        self.api("search", "GET", "@search", visitor, params=query)

    def search_page(self) -> None:
        self.send("search page", "GET", "@@search", visitor=True, params={"SearchableText": self.rng.choice(WORDS)})

    def look_up(self) -> None:
        """Request an own page from any process: its state must be the acknowledged one."""
        known = [page for page in self.pages[-ENOUGH:] if page.certain and page.uid]
        if not known:
            return
        page = self.rng.choice(known)
        found = self.found("look up", {"UID": page.uid})
        expected = [] if page.version.path is None else [(page.uid, page.version)]
        if found is not None and found != expected:
            self.stale.append(f"{page} found as {found}")

    def found(self, kind: str, query: dict[str, Any]) -> list[tuple[str, Version]] | None:
        """Return UID and version of each hit of *query*; None without an answer."""
        query |= {"metadata_fields": ["UID", "review_state", "getPath"]}
        response = self.api(kind, "GET", "@search", params=query)
        if response is None:
            return None
        return [
            (i["UID"], Version(i["getPath"].split("/", 2)[2], i["title"], i["review_state"] or ""))
            for i in response.json()["items"]
        ]

    def navigate(self) -> None:
        if self.rng.random() < 0.3:
            self.api("navigate", "GET", f"{AREA}/@navigation", params={"expand.navigation.depth": 2})
        elif self.live and self.rng.random() < 0.5:
            self.send("navigate", "GET", str(self.rng.choice(self.live).version.path))
        else:
            self.send("navigate", "GET", self.rng.choice([*self.seeded, f"{AREA}/{self.rng.choice(FOLDERS)}"]))

    # -- writing

    def title(self) -> str:
        self._count += 1
        return f"{self.rng.choice(WORDS)} w{self.number}x{self._count}"

    def create_or_delete(self) -> None:
        self.resolve()
        folders = [folder for folder in self.folders if folder in self.live]
        if len(folders) > 1:
            self.delete(folders[0])
        elif not folders:
            self.home = self.create("Folder", self.folder())
            self.folders.append(self.home)
        elif self.home not in folders:
            self.home = folders[0]
        elif self.home and len(self.live) < ENOUGH:
            portal_type = "File" if self.files and self.rng.random() < self.files else "Document"
            self.create(portal_type, self.rng.choice([self.folder(), str(self.home.version.path)]))
        else:
            self.delete(self.rng.choice(self.leaves()))

    def delete(self, page: Page) -> None:
        path = str(page.version.path)
        become: Become = lambda version: ABSENT if is_below(path, version) else version  # noqa: E731
        for each in self.write_folder(become, "delete", "DELETE", path, path):
            self.retire(each)

    def create(self, portal_type: str, container: str) -> Page:
        title = self.title()
        name = title.replace(" ", "-")
        page = Page(None, [ABSENT])
        self.pages.append(page)
        self.live.append(page)
        version = Version(f"{container}/{name}", title)
        data: dict[str, Any] = {"@type": portal_type, "id": name, "title": title}
        if portal_type == "File":
            version = replace(version, state="")
            page.word = f"zq{word(title)}qz"
            file = pdf_of([*(f"page {number} of {name}" for number in range(FILE_PAGES)), page.word])
            data["file"] = {"data": b64encode(file).decode(), "encoding": "base64"}
            data["file"] |= {"filename": f"{name}.pdf", "content-type": PDF}
        else:
            data["text"] = f"<p>{' '.join(self.rng.choices(WORDS, k=80))}</p>"
        page.note(f"create {version.path}")
        kind = "upload" if page.word else "create"
        response = self.write([page], lambda absent: version, kind, "POST", container, json=data)
        if response is not None:
            page.uid = response.json()["UID"]
        return page

    def edit(self) -> None:
        if page := self.own():
            title = self.title()
            data = {"title": title, "description": f"{title} again"}
            become = partial(replace, title=title)
            self.write([page], become, "edit", "PATCH", str(page.version.path), json=data)

    def workflow(self) -> None:
        page = self.own()
        if page and not page.word:  # files have no workflow
            transition, state = {"private": ("publish", "published")}.get(page.version.state, ("retract", "private"))
            path = f"{page.version.path}/@workflow/{transition}"
            self.write([page], partial(replace, state=state), "workflow", "POST", path)

    def move(self) -> None:
        if leaves := self.leaves():
            self.move_to(self.rng.choice(leaves), "move")

    def move_folder(self) -> None:
        if self.home in self.live and self.home is not None:
            self.move_to(self.home, "move folder")

    def move_to(self, page: Page, kind: str) -> None:
        source, target = str(page.version.path), self.folder()
        container, _, name = source.rpartition("/")
        if container != target:
            become = partial(moved, source, f"{target}/{name}")
            data = {"source": f"/{source}"}
            self.write_folder(become, kind, "POST", f"{target}/@move", source, json=data)

    def rename(self) -> None:
        """Rename by the form of the folder contents, which requires a token."""
        leaves = self.leaves()
        token = self._token or self.token()
        if not leaves or not token:
            return
        page = self.rng.choice(leaves)
        source = str(page.version.path)
        container, _, name = source.rpartition("/")
        new = f"{name.partition('-r')[0]}-r{self._count}"
        self._count += 1
        form = {"UID_0": page.uid, "newid_0": new, "newtitle_0": page.version.title, "_authenticator": token}
        become = partial(renamed, new, page.version.title)
        before = page.possible
        response = self.write([page], become, "rename", "POST", f"{container}/@@fc-rename", data=form)
        if response is not None and response.json()["status"] != "success":
            # The form turns an error into a warning.
            self.answers[-1].error = f"rename: {response.json()['msg']}"
            page.possible = [*before, *page.possible]
            self.retire(page)
            self.unknown.append(page)

    def token(self) -> str:
        response = self.send("navigate", "GET", "@@authenticator/authenticator")
        if response is not None and (match := re.search(r'value="(\w+)"', response.text)):
            self._token = match.group(1)
        return self._token

    # -- existing pages

    def folder(self) -> str:
        return f"{AREA}/{self.rng.choice(FOLDERS)}"

    def own(self) -> Page | None:
        return self.rng.choice(self.live) if self.live else None

    def leaves(self) -> list[Page]:
        return [page for page in self.live if page not in self.folders]

    def below(self, path: str) -> list[Page]:
        """Return the pages that are, or may be, at *path* or below it."""
        return [page for page in self.pages if any(is_below(path, version) for version in page.possible)]


def is_below(path: str, version: Version) -> bool:
    return f"{version.path}/".startswith(f"{path}/")


def renamed(name: str, title: str, version: Version) -> Version:
    """Return the result of *version* after a form that names the object by its UID: it is renamed wherever it is."""
    if version.path is None:
        return version
    container = version.path.rpartition("/")[0]
    return replace(version, path=f"{container}/{name}", title=title)


def difference(path: str, other: str) -> tuple[str, str]:
    """Return *path* and *other* without the last names that both have in common."""
    names, others = path.split("/"), other.split("/")
    while names and others and names[-1] == others[-1]:
        del names[-1], others[-1]
    return "/".join(names), "/".join(others)


def moved(source: str, target: str, version: Version) -> Version:
    """Return the result of *version* when *source* becomes *target*."""
    return (
        replace(version, path=f"{target}{str(version.path)[len(source) :]}") if is_below(source, version) else version
    )
