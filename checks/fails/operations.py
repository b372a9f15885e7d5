"""The operations of which each message fails once: each is prepared, done, and its effect observed.

All act on the site ``plone`` of a ZODB.DB, as a request or a thread of Zope would.
"""

from base64 import b64encode
from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextlib import ExitStack
from demo import documents
from plone.pgcatalog.database import counts
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.unavailable import unavailable_filter
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import rebuilding
from tests.integration.uploads import due
from tests.integration.uploads import upload
from tests.integration.web import application
from tests.integration.web import MANAGER
from tests.integration.web import Response
from tests.integration.web import Web
from typing import Any

import psycopg
import time
import transaction


#: Seconds beyond now up to which a pack removes objects.
LATER = 5
BEFORE, AFTER = "before", "after"


class Refused(Exception):
    """A request was answered by another status than success."""


def in_thread(call: Callable[[], Any]) -> Any:
    """Return the result of *call* in a thread of its own, without the transaction of this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def fill(portal: Any) -> None:
    """Create the content that operations change."""
    for name in ("one", "two"):
        create(portal, "Folder", name)
    tree = create(portal.one, "Folder", "tree")
    for number in range(4):
        create(create(tree, "Folder", f"f{number}"), "Document", "leaf", title=f"leaf {number}")
    create(portal, "Document", "other", title="other 0")
    create(portal, "Document", "undone", title="title 0")
    portal.manage_permission("plone.restapi: Use REST API", ["Anonymous"], acquire=1)
    # A first version of each new page would hide no fault, and be half of the messages.
    portal.portal_repository.manage_setTypePolicies({})


def hits(portal: Any, **query: Any) -> list[str]:
    return sorted(b.getPath() for b in portal.portal_catalog.unrestrictedSearchResults(**query))


class Place:
    """The Zope of *db*, whose messages fail, with the connection string *direct* of its database without failures."""

    def __init__(self, db: Any, direct: str) -> None:
        self.db, self.direct = db, direct
        self.web = Web(db, unavailable_filter(application(db)))

    def request(self, method: str, path: str, data: Any) -> Response:
        """Return the answer to a manager's request.  Raises Refused."""
        answer = self.web.send_json(method, path, MANAGER, data)
        if answer.status >= 300:
            raise Refused(f"{answer.status} {answer.text[:200]}")
        return answer

    @contextmanager
    def saving(self) -> Iterator[Any]:
        """Yield the site, and commit."""
        with sites.inside(self.db) as portal:
            yield portal
            transaction.commit()

    def sql(self, statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(self.direct, autocommit=True) as connection:
            return connection.execute(statement, values).fetchall()


class Operation:
    """An operation, done again and again with another *number*; ``state`` is BEFORE, AFTER, or a description of a half."""

    name = ""
    keeps_history = False
    #: False: a failure is no error, and the work is done later.
    acknowledges = True

    def prepare(self, place: Place, number: int) -> None:
        """Create the content of the operation."""

    def do(self, place: Place, number: int) -> None:
        """Do the operation; a return acknowledges it.  Raises any error."""
        raise NotImplementedError

    def state(self, place: Place, portal: Any, number: int) -> str:
        """Return the state in *portal*, the site in a transaction of its own, maybe of another process."""
        raise NotImplementedError

    def recover(self, place: Place, number: int) -> None:
        """Do the work that the next worker or administrator does, until all is done: also jobs that wait."""
        due(place.direct)
        do_jobs(place)

    def close(self) -> None:
        """End the operation that has failed."""


def state_of(is_done: bool, is_undone: bool, found: Any) -> str:
    return AFTER if is_done else BEFORE if is_undone else f"half: {found}"


class Save(Operation):
    """A page is created by REST."""

    name = "save"

    def do(self, place: Place, number: int) -> None:
        data = {"@type": "Document", "id": f"page{number}", "title": f"pageword{number}", "subjects": [f"tag{number}"]}
        place.request("POST", "/plone", data)

    def state(self, place: Place, portal: Any, number: int) -> str:
        path = f"/plone/page{number}"
        found = [
            f"page{number}" in portal,
            hits(portal, Title=f"pageword{number}"),
            hits(portal, Subject=f"tag{number}"),
        ]
        return state_of(found == [True, [path], [path]], found == [False, [], []], found)


class Fold(Save):
    """A commit adds the pending changes of the counts to the counts."""

    name = "fold"

    def prepare(self, place: Place, number: int) -> None:
        self._commits, counts.FOLD_COMMITS = counts.FOLD_COMMITS, 1

    def close(self) -> None:
        counts.FOLD_COMMITS = self._commits


class SaveFile(Operation):
    """A file is uploaded by REST."""

    name = "save with a file"

    def do(self, place: Place, number: int) -> None:
        file = {"data": b64encode(self._data(number)).decode(), "encoding": "base64", "content-type": documents.PDF}
        place.request("POST", "/plone", {"@type": "File", "id": f"up{number}", "file": file | {"filename": "up.pdf"}})

    @staticmethod
    def _data(number: int) -> bytes:
        return f"%PDF-upword{number}".encode()

    def state(self, place: Place, portal: Any, number: int) -> str:
        name = f"up{number}"
        is_there = name in portal
        found = [is_there, hits(portal, getId=name), is_there and portal[name].file.data == self._data(number)]
        return state_of(found == [True, [f"/plone/{name}"], True], found == [False, [], False], found)


class Move(Operation):
    """A folder with folders and pages is moved by REST."""

    name = "move of a tree"

    def __init__(self) -> None:
        self._source, self._target = "one", "two"

    def prepare(self, place: Place, number: int) -> None:
        with place.saving() as portal:
            names = ("one", "two") if "tree" in portal.one else ("two", "one")
            self._source, self._target = names

    def do(self, place: Place, number: int) -> None:
        place.request("POST", f"/plone/{self._target}/@move", {"source": f"/{self._source}/tree"})

    def state(self, place: Place, portal: Any, number: int) -> str:
        moved, stayed = ((name, len(hits(portal, path=f"/plone/{name}/tree"))) for name in (self._target, self._source))
        found = [("tree" in portal[name], rows) for name, rows in (moved, stayed)]
        return state_of(found == [(True, 9), (False, 0)], found == [(False, 0), (True, 9)], found)


class Switch(Operation):
    """The relation of a rebuild replaces the one of the catalog."""

    name = "switch of a rebuild"

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._relation = ""

    def prepare(self, place: Place, number: int) -> None:
        self._relation = self._live(place)
        self._steps = self._stack.enter_context(rebuilding(place.db))
        self._steps.run(until="replay")

    @staticmethod
    def _live(place: Place) -> str:
        return str(place.sql("SELECT relation FROM pgcatalog_state")[0][0])

    def do(self, place: Place, number: int) -> None:
        self._steps.run()

    def state(self, place: Place, portal: Any, number: int) -> str:
        rows = len(hits(portal, path="/plone/one")), len(hits(portal, path="/plone/two"))
        is_whole = sorted(rows) == [1, 10]
        live = self._live(place)
        return state_of(is_whole and live != self._relation, is_whole and live == self._relation, rows)

    def close(self) -> None:
        self._stack.close()

    def recover(self, place: Place, number: int) -> None:
        rebuild(place.db)
        super().recover(place, number)


class Pack(Operation):
    """Objects that nothing refers to are removed."""

    name = "pack"

    def __init__(self) -> None:
        self._garbage: list[int] = []

    def prepare(self, place: Place, number: int) -> None:
        from ZODB.utils import u64

        with place.saving() as portal:
            folder = create(portal, "Folder", "garbage")
            pages = [create(folder, "Document", name) for name in ("a", "b")]
            transaction.commit()
            self._garbage = [u64(obj._p_oid) for obj in (folder, *pages)]
            portal.manage_delObjects(["garbage"])

    def do(self, place: Place, number: int) -> None:
        in_thread(lambda: place.db.pack(time.time() + LATER))

    def state(self, place: Place, portal: Any, number: int) -> str:
        [(left,)] = place.sql("SELECT count(*) FROM object_state WHERE zoid = ANY(%s)", self._garbage)
        found = left, hits(portal, getId="garbage")
        return state_of(found == (0, []), found == (len(self._garbage), []), found)

    def recover(self, place: Place, number: int) -> None:
        self.do(place, number)
        super().recover(place, number)


class Undo(Operation):
    """The last transaction is undone, and its pages are catalogued again."""

    name = "undo"
    keeps_history = True

    def prepare(self, place: Place, number: int) -> None:
        with place.saving() as portal:
            self._former = portal.undone.title
            portal.undone.title = f"title {number}"
            portal.undone.reindexObject()

    def do(self, place: Place, number: int) -> None:
        def undo() -> None:
            with place.saving():
                place.db.undo(place.db.undoInfo(0, 1)[0]["id"])

        in_thread(undo)

    def state(self, place: Place, portal: Any, number: int) -> str:
        found = portal.undone.title, len(hits(portal, Title=f'"title {number}"'))
        # The catalog follows by a job, which may be due later.
        return state_of(found[0] == self._former, found == (f"title {number}", 1), found)


class Job(Operation):
    """A worker extracts the text of a file."""

    name = "job of the queue"
    acknowledges = False

    def prepare(self, place: Place, number: int) -> None:
        with place.saving() as portal:
            upload(portal, f"file{number}", f"%PDF-fileword{number}".encode())

    def do(self, place: Place, number: int) -> None:
        worker = Worker(place.db, str(place.db.storage._dsn))

        def work() -> None:
            with worker._connected() as (connection, _):
                while worker.run_one(connection):
                    pass

        in_thread(work)

    def state(self, place: Place, portal: Any, number: int) -> str:
        [(jobs,)] = place.sql("SELECT count(*) FROM pgcatalog_queue WHERE kind = 'text'")
        found = jobs, len(hits(portal, SearchableText=f"fileword{number}"))
        # A job that is done, and not yet taken from the queue, is done again.
        return state_of(found == (0, 1), found in ((1, 0), (1, 1)), found)


def do_jobs(place: Place) -> None:
    """Do all jobs that are due.  Raises psycopg.Error."""
    in_thread(Worker(place.db, str(place.db.storage._dsn)).run_until_empty)


OPERATIONS: dict[str, type[Operation]] = {
    kind.name: kind for kind in (Save, SaveFile, Move, Switch, Pack, Undo, Fold, Job)
}
