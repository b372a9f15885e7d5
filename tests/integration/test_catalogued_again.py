"""An object that is uncatalogued, stays persistent, and is catalogued again elsewhere has the rows, texts and vectors of now.

So do the recycle bin of Plone 6.3, and working copies: the object keeps its oid, and with it its record id.
"""

from Acquisition import aq_base
from collections.abc import Iterator
from demo import documents as files
from persistent.mapping import PersistentMapping
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from psycopg.sql import Identifier
from psycopg.sql import SQL
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.editors import editor
from tests.integration.meanings import embedder
from tests.integration.meanings import page
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.uploads import upload
from tests.integration.uploads import work
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
    with sites.opened(sites.clone(postgres, site_template)) as db:
        yield from of_site(db)


def of_site(db: Any) -> Iterator[tuple[Any, Worker]]:
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
    """Take the object *name* out of *folder*, which uncatalogues it; return it."""
    thing = aq_base(folder[name])
    folder._delObject(name)
    return thing


def catalogued_again(portal: Any, name: str, commits: tuple[str, ...], change: Any) -> Any:
    """Take the object *name* out of one folder, *change* it in the bin, and put it into the other one; return it."""
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
def test_object_that_is_catalogued_again_elsewhere_has_one_row_of_now(place: Any, commits: tuple[str, ...]) -> None:
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
    # The vectors are those of the title now: it is about money, and no more about holidays.
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
def test_file_that_is_catalogued_again_has_the_text_of_now(place: Any, commits: tuple[str, ...]) -> None:
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


# -- what else knows the object


def title_and_path(portal: Any, name: str) -> list[tuple[str, str]]:
    """Return (title, path) of each brain of *name*."""
    brains = portal.portal_catalog.unrestrictedSearchResults(getId=name)
    return [(brain.Title, brain.getPath()) for brain in brains]


def rename(thing: Any) -> None:
    thing.title = "numbat salary"


@pytest.mark.parametrize("commits", COMMITS, ids="-".join)
def test_other_connections_see_the_row_of_their_snapshot_then_that_of_now(place: Any, commits: tuple[str, ...]) -> None:
    """Also a connection of another ZODB.DB, as of another Zope."""
    portal, worker = place
    name = "seen-" + "-".join(commits)
    page(portal.old, name, "wombat holiday")
    transaction.commit()
    before, now = [("wombat holiday", f"/plone/old/{name}")], [("numbat salary", f"/plone/new/{name}")]
    with sites.opened(worker.dsn) as db, editor(portal._p_jar.db()) as near, editor(db) as far:
        assert [each.do(title_and_path, name) for each in (near, far)] == [before] * 2
        catalogued_again(portal, name, commits, rename)
        assert title_and_path(portal, name) == now
        assert [each.do(title_and_path, name) for each in (near, far)] == [before] * 2
        for each in (near, far):
            each.begin()
        assert [each.do(title_and_path, name) for each in (near, far)] == [now] * 2


@pytest.mark.parametrize("commits", COMMITS, ids="-".join)
def test_kept_results_have_the_rows_of_their_search(place: Any, commits: tuple[str, ...]) -> None:
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
    """(portal, worker) of such a site whose storage keeps history."""
    with sites.opened(sites.clone(postgres, site_template), history_preserving=True) as db:
        yield from of_site(db)


def last(portal: Any, count: int, note: str = "") -> list[Any]:
    """Return the ids of the last *count* transactions with this *note*, the newest one first."""
    known = portal._p_jar.db().undoInfo(0, 100)
    return [each["id"] for each in known if each["description"].startswith(note)][:count]


def undo(portal: Any, ids: list[Any]) -> list[Any]:
    """Take back the transactions *ids*, one after the other; return the ids of those that did so.

    The catalog follows each in a transaction of its own.
    """
    for each in ids:
        portal._p_jar.db().undo(each)
        transaction.get().note("taken back")
        transaction.commit()
    return last(portal, len(ids), "taken back")


def found(portal: Any, name: str) -> dict[str, Any]:
    """Return what *portal* answers about the object *name*: rows, words of its text, and those of the same meaning."""
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
def test_undo_brings_back_row_text_and_vectors_of_before(
    undoable: tuple[Any, Worker], kind: str, commits: tuple[str, ...]
) -> None:
    """The undo of the undo brings back those of now; an object that is uncatalogued in between has none.

    A storage with history cannot bring back a blob whose creation was undone (docs/upstream, 0009).
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
