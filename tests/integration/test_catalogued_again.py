"""An object that is uncatalogued, stays persistent, and is catalogued again elsewhere has current rows, texts and vectors.

Plone 6.3's recycle bin and working copies do so: the object has the same oid, and so the same record id.
"""

from Acquisition import aq_base
from collections.abc import Iterator
from contextlib import contextmanager
from demo import documents as files
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from persistent.mapping import PersistentMapping
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from psycopg.sql import Identifier
from psycopg.sql import SQL
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.editors import Editor
from tests.integration.editors import editor
from tests.integration.meanings import embedder
from tests.integration.meanings import page
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.uploads import upload
from tests.integration.uploads import work
from tests.property.pair import feeding_the_oracle
from tests.property.pair import ORACLE
from typing import Any
from ZODB.utils import u64

import pytest
import transaction


#: After which steps the transaction is committed.
COMMITS = (
    (),
    ("taken", "changed"),
    pytest.param(("taken",), marks=pytest.mark.slow),
    pytest.param(("changed",), marks=pytest.mark.slow),
)
QUERIES: tuple[dict[str, Any], ...] = (
    {"SearchableText": "wombat"},
    {"SearchableText": "numbat"},
    {"path": "/plone/old"},
    {"path": "/plone/new"},
    {"Title": "numbat"},
    {"portal_type": ["Document", "File"], "sort_on": "path"},
)


@pytest.fixture(scope="module")
def place(site_template: str, postgres: Any) -> Iterator[tuple[Any, Worker]]:
    """(portal, worker) of a site with an embedder, two folders and a bin."""
    with sites.opened(sites.clone(postgres, site_template)) as db, site_in(db) as site:
        yield site


@contextmanager
def site_in(db: Any) -> Iterator[tuple[Any, Worker]]:
    """Yield (portal, worker) of the site in *db*."""
    with sites.inside(db) as portal, embedder(meaning_of_private=True):
        create(portal, "Folder", "old", title="Old")
        create(portal, "Folder", "new", title="New")
        portal.test_bin = PersistentMapping()
        transaction.commit()
        yield portal, Worker(db, database_dsn(db))


def commit_after(step: str, commits: tuple[str, ...]) -> None:
    if step in commits:
        transaction.commit()


def taken(folder: Any, name: str) -> Any:
    """Remove the object *name* from *folder*, which uncatalogues it; return it."""
    thing = aq_base(folder[name])
    folder._delObject(name)
    return thing


def catalogued_again(portal: Any, name: str, commits: tuple[str, ...], change: Any) -> Any:
    """Move the object *name* into the bin, *change* it there, move it into the other folder, and return it."""
    portal.test_bin[name] = thing = taken(portal.old, name)
    commit_after("taken", commits)
    change(thing)
    commit_after("changed", commits)
    del portal.test_bin[name]
    portal.new._setObject(name, thing)
    transaction.commit()
    return portal.new[name]


def paths(portal: Any, dsn: str, oid: int) -> list[Any]:
    """Return the paths of the rows of the object *oid*."""
    catalog = portal.portal_catalog._core.zoid
    with connect(dsn, "test") as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state WHERE catalog = %s", (catalog,))
        query = SQL("SELECT path FROM {} WHERE zoid = %s").format(Identifier(relation))
        return [path for (path,) in connection.execute(query, (oid,))]


@pytest.mark.parametrize("commits", COMMITS, ids="-".join)
def test_object_catalogued_again_elsewhere_has_one_current_row(place: Any, commits: tuple[str, ...]) -> None:
    portal, worker = place
    name = "page-" + "-".join(commits)
    thing = page(portal.old, name, "wombat holiday", "The wombat sleeps.")
    transaction.commit()
    work(worker)
    transaction.begin()
    oid = u64(thing._p_oid)
    [before] = portal.portal_catalog(path=f"/plone/old/{name}")
    rid = before.getRID()
    assert before.Title == "wombat holiday"

    def change(thing: Any) -> None:
        thing.title = "numbat salary"
        thing.text = None

    again = catalogued_again(portal, name, commits, change)
    assert u64(again._p_oid) == oid
    work(worker)
    transaction.begin()
    assert_is_of_now(portal, name, rid)
    assert paths(portal, worker.dsn, oid) == [f"/plone/new/{name}"]
    assert before.Title == "wombat holiday"
    transaction.begin()
    oracle = make_oracle(portal)
    for query in QUERIES:
        assert answer(portal.portal_catalog, query) == answer(oracle, query), query
    # The vectors are of the current title: it is about money, not about holidays.
    nearest = [brain.getId for brain in portal.portal_catalog(SearchableText="wages", rank="hybrid", path="/plone/new")]
    assert name in nearest
    assert name not in [brain.getId for brain in portal.portal_catalog(SearchableText="vacation", rank="hybrid")]


def assert_is_of_now(portal: Any, name: str, rid: int) -> None:
    catalog = portal.portal_catalog
    assert [brain.getPath() for brain in catalog(getId=name)] == [f"/plone/new/{name}"]
    assert len(catalog(path=f"/plone/old/{name}")) == 0
    [brain] = catalog(SearchableText="numbat", getId=name)
    assert (brain.Title, brain.getObject().title, brain.getRID()) == ("numbat salary", "numbat salary", rid)
    assert len(catalog(SearchableText="wombat", getId=name)) == 0


@pytest.mark.parametrize("commits", COMMITS, ids="-".join)
def test_file_catalogued_again_has_the_current_text(place: Any, commits: tuple[str, ...]) -> None:
    portal, worker = place
    name = "file-" + "-".join(commits)
    upload(portal.old, name, files.pdf("quokka bilby"))
    transaction.commit()
    work(worker)
    transaction.begin()
    assert len(portal.portal_catalog(SearchableText="bilby", getId=name)) == 1
    catalogued_again(portal, name, commits, lambda thing: None)
    work(worker)
    transaction.begin()
    assert [b.getPath() for b in portal.portal_catalog(SearchableText="bilby", getId=name)] == [f"/plone/new/{name}"]
    portal.old._setObject(name, taken(portal.new, name))
    transaction.commit()

    def replace(thing: Any) -> None:
        thing.file = files.blob(files.pdf("echidna"), files.PDF)

    catalogued_again(portal, name, commits, replace)
    work(worker)
    transaction.begin()
    assert len(portal.portal_catalog(SearchableText="bilby", getId=name)) == 0
    assert [b.getPath() for b in portal.portal_catalog(SearchableText="echidna", getId=name)] == [f"/plone/new/{name}"]


# -- other copies of the object's data


def title_and_path(portal: Any, name: str) -> list[tuple[str, str]]:
    """Return (title, path) of each brain of *name*."""
    brains = portal.portal_catalog.unrestrictedSearchResults(getId=name)
    return [(brain.Title, brain.getPath()) for brain in brains]


def rename(thing: Any) -> None:
    thing.title = "numbat salary"


@pytest.mark.parametrize("commits", COMMITS, ids="-".join)
def test_other_connections_see_the_row_of_their_snapshot_then_the_current_one(
    place: Any, commits: tuple[str, ...]
) -> None:
    """Including a connection of another ZODB.DB, as in another Zope."""
    portal, worker = place
    name = "seen-" + "-".join(commits)
    page(portal.old, name, "wombat holiday")
    transaction.commit()
    before, now = [("wombat holiday", f"/plone/old/{name}")], [("numbat salary", f"/plone/new/{name}")]
    # The storage that is opened waits for the tables that a transaction has read.
    transaction.begin()
    with sites.opened(worker.dsn) as db, editor(portal._p_jar.db()) as near, editor(db) as far:
        assert [each.do(title_and_path, name) for each in (near, far)] == [before] * 2
        catalogued_again(portal, name, commits, rename)
        assert title_and_path(portal, name) == now
        assert [each.do(title_and_path, name) for each in (near, far)] == [before] * 2
        for each in (near, far):
            each.begin()
        assert [each.do(title_and_path, name) for each in (near, far)] == [now] * 2


@pytest.mark.parametrize("commits", COMMITS, ids="-".join)
def test_cached_results_have_the_rows_of_their_search(place: Any, commits: tuple[str, ...]) -> None:
    portal, _ = place
    name = "kept-" + "-".join(commits)
    page(portal.old, name, "wombat holiday")
    transaction.commit()
    catalog = portal.portal_catalog
    queries: tuple[dict[str, Any], ...] = (
        {"getId": name},
        {"path": "/plone/old", "sort_on": "getObjPositionInParent"},
        {"Title": "wombat", "sort_on": "path"},
    )
    read, unread = ([catalog.unrestrictedSearchResults(**query) for query in queries] for _ in range(2))
    expected = [[(brain.getRID(), brain.getPath(), brain.Title) for brain in result] for result in read]
    catalogued_again(portal, name, commits, rename)
    assert [[(brain.getRID(), brain.getPath(), brain.Title) for brain in result] for result in read] == expected
    assert [[brain.getRID() for brain in result] for result in unread] == [[r for r, _, _ in rows] for rows in expected]
    assert title_and_path(portal, name) == [("numbat salary", f"/plone/new/{name}")]


# -- undo


@pytest.fixture
def undoable(site_template: str, postgres: Any) -> Iterator[tuple[Any, Worker]]:
    """(portal, worker) of such a site whose storage preserves history."""
    with sites.opened(sites.clone(postgres, site_template), history_preserving=True) as db, site_in(db) as site:
        yield site


def last(portal: Any, count: int, note: str = "") -> list[Any]:
    """Return the ids of the last *count* transactions with this *note*, the newest one first."""
    known = portal._p_jar.db().undoInfo(0, 100)
    return [each["id"] for each in known if each["description"].startswith(note)][:count]


def undo(portal: Any, ids: list[Any]) -> list[Any]:
    """Undo the transactions *ids*, one after the other; return the ids of the undo transactions.

    The catalog follows each in a transaction of its own.
    """
    for each in ids:
        portal._p_jar.db().undo(each)
        transaction.get().note("taken back")
        transaction.commit()
    return last(portal, len(ids), "taken back")


def found(portal: Any, name: str) -> dict[str, Any]:
    """Return the answers of *portal* about the object *name*: rows, words of its text, and words with the same meaning."""
    catalog = portal.portal_catalog
    texts = {word: catalog(SearchableText=word, getId=name) for word in ("wombat", "numbat", "bilby", "echidna")}
    meanings = {word: catalog(SearchableText=word, rank="hybrid", getId=name) for word in ("vacation", "wages")}
    return {
        "rows": [(b.getPath(), b.Title, b.getRID()) for b in catalog.unrestrictedSearchResults(getId=name)],
        "texts": [word for word, brains in texts.items() if len(brains)],
        "meanings": [word for word, brains in meanings.items() if len(brains)],
        "row ids": {folder: [b.getRID() for b in catalog(path=f"/plone/{folder}/{name}")] for folder in ("old", "new")},
    }


@pytest.mark.parametrize("commits", COMMITS, ids="-".join)
@pytest.mark.parametrize("kind", ["page", "file"])
def test_undo_restores_row_text_and_vectors(undoable: tuple[Any, Worker], kind: str, commits: tuple[str, ...]) -> None:
    """An undo of the undo restores the current ones; an object that is uncatalogued in between has none.

    A storage with history cannot restore a blob whose creation was undone (docs/upstream, 0009).
    """
    portal, worker = undoable
    if kind == "page":
        page(portal.old, "thing", "wombat holiday")
    else:
        upload(portal.old, "thing", files.pdf("bilby holiday"))

    def change(thing: Any) -> None:
        thing.title = "numbat salary"
        if kind == "file":
            thing.file = files.blob(files.pdf("echidna"), files.PDF)

    def after_work() -> dict[str, Any]:
        work(worker)
        transaction.begin()
        return found(portal, "thing")

    transaction.commit()
    before = after_work()
    assert before["rows"]
    assert before["texts"] == ["wombat" if kind == "page" else "bilby"]
    catalogued_again(portal, "thing", commits, change)
    changes = last(portal, len(commits) + 1)
    now = after_work()
    assert now["texts"] == ["numbat"] if kind == "page" else ["numbat", "echidna"]
    assert now["rows"] != before["rows"]
    undone = undo(portal, changes)
    assert after_work() == before
    if kind == "file":
        return
    undone = undo(portal, undone)
    assert after_work() == now
    if commits:
        undo(portal, undone[:1])
        assert after_work()["rows"] == []


# -- random sequences

FOLDERS = ("old", "new")
#: Title -> a word of the same meaning.
TITLES = {"wombat holiday": "vacation", "numbat salary": "wages", "quoll fire": "flames"}
#: Words of the file's text.
TEXTS = ("bilby", "echidna", "quokka")
NAMES = ("page", "file")
SORTED: dict[str, Any] = {"sort_on": "path"}
ASKED: tuple[dict[str, Any], ...] = (
    *({"path": f"/plone/{folder}", **SORTED} for folder in FOLDERS),
    *({"Title": title.split()[0], **SORTED} for title in TITLES),
    *({"SearchableText": title.split()[0], "portal_type": "Document"} for title in TITLES),
    {"getId": NAMES, "sort_on": ["sortable_title", "getId"]},
    {"getId": NAMES, "sort_on": ["portal_type", "getObjPositionInParent"]},
)


class Sequence:
    """Applies steps to a page and a file of the site of *portal*, and compares the catalogs with a ZCatalog."""

    def __init__(self, portal: Any, worker: Worker, other: Editor) -> None:
        self.portal = portal
        self.worker = worker
        self.other = other
        page(portal.old, "page", "wombat holiday")
        upload(portal.new, "file", files.pdf("bilby"))
        self.things = {"page": aq_base(portal.old.page), "file": aq_base(portal.new.file)}
        self.text = self.saved_text = "bilby"
        self.savepoints: list[Any] = []
        self.commit(0, "")

    def folder_of(self, name: str) -> Any:
        """Return the folder of the thing *name*, None if it is in the bin."""
        return next((folder for id in FOLDERS if name in (folder := self.portal[id])), None)

    # -- steps: each has a number and the name of a thing

    def take(self, number: int, name: str) -> None:
        if (folder := self.folder_of(name)) is not None:
            self.portal.test_bin[name] = taken(folder, name)

    def put(self, number: int, name: str) -> None:
        if name in self.portal.test_bin:
            self.portal[FOLDERS[number % 2]]._setObject(name, self.portal.test_bin.pop(name))

    def move(self, number: int, name: str) -> None:
        if (folder := self.folder_of(name)) is not None:
            other = self.portal[FOLDERS[folder.getId() == "old"]]
            other.manage_pasteObjects(folder.manage_cutObjects([name]))

    def uncatalog(self, number: int, name: str) -> None:
        if (folder := self.folder_of(name)) is not None:
            folder[name].unindexObject()

    def change(self, number: int, name: str) -> None:
        """Change the title, and the file; an object in a folder is catalogued."""
        self.things[name].title = list(TITLES)[number % 3]
        if name == "file":
            self.text = TEXTS[number % 3]
            self.things[name].file = files.blob(files.pdf(self.text), files.PDF)
        if (folder := self.folder_of(name)) is not None:
            folder[name].reindexObject()

    def savepoint(self, number: int, name: str) -> None:
        self.savepoints.append((transaction.savepoint(), self.text))

    def rollback(self, number: int, name: str) -> None:
        if self.savepoints:
            savepoint, self.text = self.savepoints.pop()
            savepoint.rollback()

    def abort(self, number: int, name: str) -> None:
        self.savepoints.clear()
        self.text = self.saved_text
        transaction.abort()

    def commit(self, number: int, name: str) -> None:
        self.savepoints.clear()
        self.saved_text = self.text
        transaction.commit()

    def work(self, number: int, name: str) -> None:
        self.commit(number, name)
        work(self.worker)
        transaction.begin()

    # -- laws

    def run(self, steps: list[tuple[str, int, str]]) -> None:
        for step, number, name in [*steps, ("work", 0, "")]:
            kept = {n: self.portal.portal_catalog.unrestrictedSearchResults(getId=n) for n in NAMES}
            rids = {n: [b.getRID() for b in self.portal.portal_catalog(getId=n)] for n in NAMES}
            seen = self.seen_by_other()
            getattr(self, step)(number, name)
            assert {n: [brain.getRID() for brain in result] for n, result in kept.items()} == rids
            assert self.seen_by_other() == seen
            self.assert_answers_are_of_now()
            if step in ("commit", "work"):
                self.other.begin()
                assert self.seen_by_other() == {n: title_and_path(self.portal, n) for n in NAMES}
                self.assert_rows_are_of_now()
        self.assert_texts_and_vectors_are_of_now()

    def seen_by_other(self) -> dict[str, Any]:
        return {name: self.other.do(title_and_path, name) for name in NAMES}

    def assert_answers_are_of_now(self) -> None:
        # A ZCatalog caches search results for the whole request, also after an abort (search-after-rollback).
        self.portal.REQUEST.set("__catalog_cache__", None)
        for query in ASKED:
            ours, theirs = (
                answer(catalog, query) for catalog in (self.portal.portal_catalog, getattr(self.portal, ORACLE))
            )
            assert ours == theirs, query
        for name in NAMES:
            for brain in self.portal.portal_catalog(getId=name):
                assert brain.Title == self.things[name].title
                assert aq_base(brain.getObject()) is self.things[name]
                assert brain.getRID() == u64(self.things[name]._p_oid)

    def catalogued(self) -> dict[str, str]:
        """Return name -> path of the things in the ZCatalog."""
        return {
            brain.getId: brain.getPath()
            for brain in getattr(self.portal, ORACLE).unrestrictedSearchResults(getId=NAMES)
        }

    def assert_rows_are_of_now(self) -> None:
        catalogued = self.catalogued()
        for name, thing in self.things.items():
            expected = [path for each, path in catalogued.items() if each == name]
            assert paths(self.portal, self.worker.dsn, u64(thing._p_oid)) == expected

    def assert_texts_and_vectors_are_of_now(self) -> None:
        catalog, catalogued = self.portal.portal_catalog, self.catalogued()
        for text in TEXTS:
            found = [brain.getId for brain in catalog(SearchableText=text, getId=NAMES)]
            assert found == ["file"] * (text == self.text and "file" in catalogued)
        for title, meaning in TITLES.items():
            found = {brain.getId for brain in catalog(SearchableText=meaning, rank="hybrid", getId=NAMES)}
            assert found == {name for name in catalogued if self.things[name].title == title}

    def end(self) -> None:
        """Remove the things."""
        self.abort(0, "")
        self.portal.test_bin.clear()
        for name in NAMES:
            if (folder := self.folder_of(name)) is not None:
                folder._delObject(name)
        self.commit(0, "")


STEPS = st.tuples(
    st.sampled_from(
        [*("take", "put", "change") * 2, *("move", "uncatalog", "savepoint", "rollback"), "commit", "abort"]
    ),
    st.integers(0, 5),
    st.sampled_from(NAMES),
)


@pytest.mark.parametrize("examples", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_sequences_leave_rows_versions_texts_and_vectors_of_now(
    site_template: str, postgres: Any, examples: int
) -> None:
    """Uncatalogued, moved, changed and catalogued again, in any order and with any end of the transactions in between."""
    with (
        sites.opened(sites.clone(postgres, site_template)) as db,
        site_in(db) as (portal, worker),
        feeding_the_oracle(),
    ):
        setattr(portal, ORACLE, aq_base(make_oracle(portal)))
        transaction.commit()

        @settings(max_examples=examples, derandomize=True)
        @given(st.lists(STEPS, min_size=2, max_size=12))
        def check(steps: list[tuple[str, int, str]]) -> None:
            with editor(db) as other:
                sequence = Sequence(portal, worker, other)
                other.begin()
                try:
                    sequence.run(steps)
                finally:
                    sequence.end()

        check()
