"""Two Plone sites in one database have no effect on each other."""

from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SpecialUsers import nobody
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database import schema
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.query.objects import Path
from plone.pgcatalog.query.objects import Text
from plone.pgcatalog.queue.worker import Worker
from psycopg.rows import dict_row
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.editors import differences
from tests.integration.editors import Editor
from tests.integration.editors import editor
from tests.integration.rebuilding import rebuilding
from tests.integration.stored_counts import different
from tests.integration.stored_counts import left
from tests.integration.two_sites import ACTIONS
from tests.integration.two_sites import add_index
from tests.integration.two_sites import clear
from tests.integration.two_sites import clear_index
from tests.integration.two_sites import delete_site
from tests.integration.two_sites import edit
from tests.integration.two_sites import enter
from tests.integration.two_sites import oid
from tests.integration.two_sites import QUERIES
from tests.integration.two_sites import rebuild
from tests.integration.two_sites import reinstall
from tests.integration.two_sites import relations
from tests.integration.two_sites import rename
from tests.integration.two_sites import root
from tests.integration.two_sites import uninstall
from tests.integration.two_sites import view
from tests.integration.waiting import PATIENCE
from typing import Any

import psycopg
import pytest
import threading
import transaction


@pytest.fixture
def dsn(two_sites_template: str, postgres: Any) -> str:
    return sites.clone(postgres, two_sites_template)


@pytest.fixture
def app(db: Any) -> Iterator[Any]:
    with sites.application(db) as application:
        sites.login(application)
        enter(application.plone)
        yield application


class Pair:
    """The first site, which is changed, and the second, which must not be affected."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second


@pytest.fixture(params=["plone", pytest.param("second", marks=pytest.mark.slow)])
def pair(request: Any, app: Any) -> Pair:
    """The two sites, each once as the first."""
    first, second = (app.plone, app.second) if request.param == "plone" else (app.second, app.plone)
    enter(first)
    return Pair(first, second)


def test_each_site_counts_its_own_words(app: Any, dsn: str) -> None:
    with connect_directly(dsn, "test") as connection:
        for catalog in relations(dsn):
            assert count_words(connection, catalog)
        rows = connection.execute(
            "SELECT catalog, word FROM pgcatalog_texts, pgcatalog_spelled(catalog, text_column, '', '~')"
            " WHERE text_column = 'title' AND word = ANY(%s)",
            [["plone", "second", "needle"]],
        ).fetchall()
    first, second = oid(app.plone.portal_catalog), oid(app.second.portal_catalog)
    assert sorted(rows) == sorted([(first, "needle"), (first, "plone"), (second, "needle"), (second, "second")])


def test_each_site_has_a_relation_of_its_own(app: Any, dsn: str) -> None:
    found = relations(dsn)
    assert found.keys() == {oid(app.plone.portal_catalog), oid(app.second.portal_catalog)}
    assert len(set(found.values())) == 2


@pytest.mark.parametrize("state", ["committed", "pending"])
def test_no_answer_comes_from_the_other_site(pair: Pair, state: str) -> None:
    if state == "pending":
        for site in (pair.first, pair.second):
            enter(site)
            create(site.folder, "Document", "new", title="Needle new", subject=("both",))
    for site, other in ((pair.first, pair.second), (pair.second, pair.first)):
        enter(site)
        catalog = site.portal_catalog
        searches = [catalog.unrestrictedSearchResults, catalog.searchResults, catalog, catalog.search]
        for query in QUERIES:
            for search in searches:
                brains = search(dict(query))
                assert {b.getPath().split("/")[1] for b in brains} <= {site.id}, query
                assert all(b.getObject().getPhysicalPath()[1] == site.id for b in brains)
                assert brains.actual_result_count <= len(catalog)
        for brains in (catalog.searchAll(), catalog.getAllBrains()):
            assert {b.getPath().split("/")[1] for b in brains} == {site.id}
        assert len(catalog.unrestrictedSearchResults(UID=site.folder.UID())) == 1
        assert not catalog.unrestrictedSearchResults(UID=other.folder.UID())
        assert not catalog.unrestrictedSearchResults(path=root(other))
        assert not catalog.unrestrictedSearchResults(Subject=f"only {other.id}")
        assert f"only {other.id}" not in catalog.uniqueValuesFor("Subject")
        assert all(path.startswith(root(site)) for path in catalog._catalog.uids)
        assert catalog.getrid(root(other)) is None
        assert catalog.getpath(catalog.getrid(root(site))) == root(site)
        rid = other.portal_catalog.getrid(f"{root(other)}/folder")
        assert rid not in catalog._catalog.paths
        with pytest.raises(KeyError):
            catalog.getMetadataForRID(rid)


def test_the_same_user_id_means_another_user(pair: Pair) -> None:
    for site in (pair.first, pair.second):
        enter(site)
        site.acl_users.userFolderAddUser("mara", "secret", ["Member"], [])
    enter(pair.first)
    pair.first.folder.page.manage_setLocalRoles("mara", ["Reader"])
    pair.first.folder.page.reindexObjectSecurity()
    transaction.commit()

    def found(site: Any, user: Any) -> set[str]:
        enter(site)
        newSecurityManager(None, user.__of__(site.acl_users))
        return {b.getPath() for b in site.portal_catalog(SearchableText="needle")}

    for site, visible in ((pair.first, {"page", "open"}), (pair.second, {"open"})):
        assert found(site, site.acl_users.getUser("mara")) == {f"{root(site)}/folder/{id}" for id in visible}
        assert found(site, nobody) == {f"{root(site)}/folder/open"}


def test_changes_of_one_site_do_not_touch_the_other(pair: Pair, db: Any, dsn: str) -> None:
    before = view(pair.second)
    relation = relations(dsn)[oid(pair.second.portal_catalog)]
    for action in ACTIONS:
        sites.return_to(pair.first)
        action(pair.first)
        assert view(pair.second) == before, action
        transaction.commit()
        with sites.application(db, transaction.TransactionManager()) as other:
            assert view(other[pair.second.id]) == before, action
        assert relations(dsn)[oid(pair.second.portal_catalog)] == relation, action
        assert set(different(dsn).values()) == {0}, action


@pytest.mark.parametrize("actions", [(edit, rename), (rebuild,), (clear, uninstall)])
def test_abort_ends_changes_of_both_sites(pair: Pair, actions: Any) -> None:
    before = view(pair.first), view(pair.second)
    for site in (pair.first, pair.second):
        enter(site)
        for action in actions:
            action(site)
    transaction.abort()
    assert (view(pair.first), view(pair.second)) == before


def test_one_transaction_can_change_both_sites(pair: Pair) -> None:
    for site in (pair.first, pair.second):
        enter(site)
        edit(site)
        create(site.folder, "Document", f"new-{site.id}", title="Needle new")
    for _ in range(2):
        for site in (pair.first, pair.second):
            catalog = site.portal_catalog
            enter(site)
            found = {b.getPath() for b in catalog.unrestrictedSearchResults(SearchableText="needle")}
            assert found == {f"{root(site)}/folder/open", f"{root(site)}/folder/new-{site.id}"}
            assert [b.Title for b in catalog.unrestrictedSearchResults(Title="edited")] == ["Edited"]
        transaction.commit()


@pytest.mark.parametrize("order", [1, -1])
def test_content_moves_from_one_site_to_the_other(pair: Pair, order: int) -> None:
    first, second = pair.first, pair.second
    page, uid = first.folder.page, first.folder.page.UID()
    new = f"{root(second)}/folder/moved"
    # As the events of a move do it, for each catalog in its site.
    steps = [
        lambda: first.portal_catalog.uncatalog_object(f"{root(first)}/folder/page"),
        lambda: second.portal_catalog.catalog_object(page, new),
    ]
    for step in steps[::order]:
        step()
    for _ in range(2):
        assert not first.portal_catalog.unrestrictedSearchResults(UID=uid)
        (brain,) = second.portal_catalog.unrestrictedSearchResults(UID=uid)
        assert (brain.getPath(), brain.Title) == (new, f"Needle {first.id}")
        transaction.commit()


def test_an_object_of_the_other_site_catalogued_here(pair: Pair) -> None:
    """Code may do that: each catalog then has its own row, with its own metadata."""
    first, second = pair.first, pair.second
    first.portal_catalog.addColumn("odd")
    before = view(second)
    enter(first)
    foreign = f"{root(second)}/folder/page"
    first.portal_catalog.catalog_object(second.folder.page, foreign)
    for _ in range(2):
        assert view(second) == before
        enter(first)
        (brain,) = first.portal_catalog.unrestrictedSearchResults(path=root(second))
        assert (brain.getPath(), brain.Title) == (foreign, f"Needle {second.id}")
        transaction.commit()
    first.portal_catalog.uncatalog_object(foreign)
    for _ in range(2):
        assert view(second) == before
        enter(first)
        assert not first.portal_catalog.unrestrictedSearchResults(path=root(second))
        transaction.commit()
    first.portal_catalog.catalog_object(second.folder.page, foreign)
    transaction.commit()
    clear(first)
    transaction.commit()
    assert view(second) == before


def test_extensions_of_zcatalog_stay_in_their_site(pair: Pair) -> None:
    first, second = pair.first.portal_catalog, pair.second.portal_catalog
    for where in (Not(Eq("getId", "nothing")), Or(Text("needle"), Eq("Subject", "both")), Path("/")):
        results = first.unrestrictedSearchResults(where=where)
        found = {brain.getPath() for brain in results.iterate(2)}
        assert found == {brain.getPath() for brain in results}
        assert all(path.startswith(root(pair.first) + "/") for path in found - {root(pair.first)})
        facets = results.facets(["Subject", "getId"], limit=None)
        assert f"only {pair.second.id}" not in facets["Subject"]
        assert sum(facets["getId"].values()) == len(found)
        assert results.snippets(list(second.unrestrictedSearchResults(SearchableText="needle"))) == {}


CONCURRENT = [clear, rebuild, clear_index, add_index, rename, uninstall, reinstall, delete_site]


class Held:
    """A commit that has written everything, holds all its locks, and waits to be released."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.release = threading.Event()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """The next commit in which our hook has something to write is stopped after the hook."""
    from plone.pgcatalog.indexing.processor import PGCatalogStateProcessor

    original, gate = PGCatalogStateProcessor.finalize, Held()

    def finalize(self: Any, cursor: Any) -> None:
        original(self, cursor)
        if self._managers() and not gate.reached.is_set():
            gate.reached.set()
            assert gate.release.wait(PATIENCE)

    monkeypatch.setattr(PGCatalogStateProcessor, "finalize", finalize)
    yield gate
    gate.release.set()


@contextmanager
def two_editors(db: Any) -> Iterator[tuple[Editor, Editor]]:
    with editor(db, "plone") as one, editor(db, "second") as other:
        yield one, other


def impatient(site: Any) -> None:
    """From now on, waiting for a lock is an error."""
    site._p_jar._normal_storage.pg_connection.execute("SET lock_timeout = '1ms'")


@pytest.mark.slow
@pytest.mark.parametrize("action", CONCURRENT)
def test_sites_wait_for_each_other_neither_to_commit_nor_to_read(
    db: Any, held: Held, action: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other's whole commit is written and not committed: queries, metadata and objects are read all the same."""
    monkeypatch.setattr(schema, "LOCK_TIMEOUT", "1ms")
    with two_editors(db) as (one, other):
        other.do(impatient)
        before = other.do(view)
        one.do(action)
        committed = one.start(lambda site: transaction.commit())
        assert held.reached.wait(PATIENCE)
        for _ in range(2):
            assert other.do(view) == before
            other.begin()
            other.do(lambda site: site._p_jar.cacheMinimize())
        assert other.do(view) == before
        held.release.set()
        committed.result(PATIENCE)
        other.begin()
        assert other.do(view) == before


@pytest.mark.slow
@pytest.mark.parametrize("action", [uninstall, reinstall, delete_site])
def test_reader_of_the_site_itself_reads_its_snapshot(db: Any, action: Any) -> None:
    """Also a process that queries the catalog only afterwards, when its relation has been replaced."""
    with editor(db, "plone") as one, editor(db, "plone") as early, editor(db, "plone") as late:
        late.begin()
        before = early.do(view)
        one.do(action)
        one.commit()
        assert early.do(view) == before
        assert late.do(view) == before


@pytest.mark.slow
@pytest.mark.parametrize("action", [clear, rebuild, add_index, uninstall, delete_site])
def test_the_other_site_writes_meanwhile(db: Any, action: Any) -> None:
    """Both transactions run at the same time, and commit one after the other, without a conflict."""
    with two_editors(db) as (one, other):
        # Dexterity names generated interfaces by the site in which the process has first loaded a type.
        before = other.do(differences)
        one.begin()
        other.begin()
        one.do(action)
        other.do(edit)
        one.commit()
        other.commit()
        assert set(other.do(differences)) <= set(before)
        assert other.do(lambda site: [b.Title for b in site.portal_catalog(Title="edited")]) == ["Edited"]


@pytest.mark.slow
def test_unreadable_relations_are_dropped(db: Any, dsn: str) -> None:
    """By a worker, when the last reader has ended."""

    def relations() -> set[str]:
        with psycopg.connect(dsn) as connection:
            query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^pgcatalog_[0-9a-f]+(_[0-9]+)?$'"
            return {name for (name,) in connection.execute(query)}

    def current() -> set[str]:
        with psycopg.connect(dsn) as connection:
            return {name for (name,) in connection.execute("SELECT relation FROM pgcatalog_state")}

    assert relations() == current()
    with editor(db, "plone") as one:
        with editor(db, "second") as reader:
            reader.do(view)
            one.do(clear)
            one.commit()
            assert len(relations()) == len(current()) + 1
        one.do(uninstall)
        one.commit()
    with connect(dsn, "test") as connection:
        connection.execute("UPDATE pgcatalog_queue SET due = now()")
    Worker(db, dsn).run_until_empty()
    assert relations() == current() == left(dsn)
    assert len(current()) == 1


def unsound(site: Any) -> list[str]:
    enter(site)
    return [str(d) for d in Verifier(site.portal_catalog).differences()]


def test_the_other_site_neither_notices_nor_takes_part(app: Any, db: Any, dsn: str) -> None:
    """Also with objects of each catalogued in the other, and edits in both meanwhile."""
    plone, second = app.plone, app.second
    enter(second)
    second.portal_catalog.catalog_object(plone.folder.page, f"{root(plone)}/folder/page")
    enter(plone)
    plone.portal_catalog.catalog_object(second.folder.page, f"{root(second)}/folder/page")
    transaction.commit()
    untouched = relations(dsn)[oid(plone.portal_catalog)]
    with rebuilding(db, "second") as steps:
        while steps.step() != "replay":
            for site in (plone, second):
                enter(site)
                site.folder.open.title = f"Edited in {steps.phase}"
                site.folder.open.reindexObject()
            transaction.commit()
        enter(plone)
        before = view(plone)
        steps.run()
    transaction.begin()
    assert view(plone) == before
    assert relations(dsn)[oid(plone.portal_catalog)] == untouched
    assert unsound(second) == []
    enter(second)
    assert [b.Title for b in second.portal_catalog.unrestrictedSearchResults(getId="open")] == ["Edited in index"]
    (foreign,) = second.portal_catalog.unrestrictedSearchResults(path=root(plone))
    assert (foreign.getPath(), foreign.Title) == (f"{root(plone)}/folder/page", "Needle plone")


def test_both_are_rebuilt_at_once(app: Any, db: Any) -> None:
    with rebuilding(db, "plone") as one, rebuilding(db, "second") as other:
        while {one.phase, other.phase} != {"done"}:
            for steps in (one, other):
                if steps.phase != "done":
                    steps.step()
    transaction.begin()
    assert unsound(app.plone) == unsound(app.second) == []


def test_a_rebuild_in_one_database_does_not_run_in_another(
    db: Any, dsn: str, two_sites_template: str, postgres: Any
) -> None:
    """The catalogs of both have the same oid, and PostgreSQL shows the locks of all databases."""

    def is_running(where: str, zoid: int) -> Any:
        with psycopg.connect(where, row_factory=dict_row) as connection:
            [found] = statistics.overview(statistics.executing(connection), zoid)["catalogs"]
            return found["rebuild"]["running"]

    other = sites.clone(postgres, two_sites_template)
    with sites.opened(other) as opened, rebuilding(opened, "plone") as interrupted:
        interrupted.step()
    with rebuilding(db, "plone") as steps:
        steps.step()
        zoid = oid(steps.site.portal_catalog)
        assert is_running(dsn, zoid)
        assert not is_running(other, zoid)
