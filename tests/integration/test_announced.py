"""A search for a UID sends one message, and all searches for UIDs that a page links to send one together."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from DateTime import DateTime
from hypothesis import example
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from itertools import product
from plone.app.textfield.value import RichTextValue
from plone.app.uuid import utils as uuids
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.restapi.relations import RelationsGet
from plone.pgcatalog.results.cache import result_cache
from plone.restapi.services.relations.get import GetRelations
from plone.uuid.interfaces import ATTRIBUTE_NAME
from tests.integration import site as sites
from tests.integration import volto_pages as volto
from tests.integration.people import acting_as
from tests.integration.people import add_plain_users
from tests.integration.people import PEOPLE
from tests.integration.traffic import traced
from tests.integration.traffic import traced_requests
from tests.integration.traffic import Traffic
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any
from zExceptions import Unauthorized
from zope.interface import alsoProvides

import pytest
import transaction


def fill(portal: Any) -> None:
    add_plain_users(portal)
    volto.make_volto_page(portal)


CONTENT = SHARED = fill
VISITORS = {"anonymous": None, "editor": "edith:secret", "manager": MANAGER}


# -- one search


@pytest.fixture
def met(portal: Any) -> Any:
    """The site, whose catalog this process has already used."""
    portal.other.reindexObject()
    transaction.commit()
    transaction.begin()
    len(portal.portal_catalog.unrestrictedSearchResults(portal_type="Nothing"))
    return portal


#: Ways to read the only row of a result.
READS: dict[str, Callable[[Any], Any]] = {
    "length": lambda rs: len(rs) == 1 and rs[0].Title,
    "truth": lambda rs: rs[0].Title if rs else None,
    "count": lambda rs: rs.actual_result_count == 1 and rs[0].getPath() and rs[0].Title,
    "loop": lambda rs: next(brain.Title for brain in rs) if len(rs) else None,
}


def test_search_for_a_uid_sends_one_message(met: Any) -> None:
    search, uid = met.portal_catalog.unrestrictedSearchResults, met.targets.target00.UID()
    for (name, read), is_saved in product(READS.items(), (False, True)):
        read(search(UID=uid))
        if is_saved:
            met.other.reindexObject()
            transaction.commit()
        else:
            result_cache().clear()
        transaction.begin()
        with traced(met) as traffic:
            assert read(search(UID=uid)) == "Target 0"
        assert len(traffic[0].matching("pgcatalog")) == 1, (name, is_saved)


def test_search_for_some_or_missing_uids_sends_one_message(met: Any) -> None:
    uids = {obj.UID() for obj in met.targets.objectValues()[:20]}
    for sought, found in (("0" * 32, set()), (list(uids), uids)):
        with traced(met) as traffic:
            results = met.portal_catalog.unrestrictedSearchResults(UID=sought)
            assert (len(results), bool(results)) == (len(found), bool(found))
            assert {brain.UID for brain in results} == found
        assert len(traffic[0].matching("pgcatalog")) == 1


def test_rows_that_share_a_uid_are_all_found(portal: Any) -> None:
    uid = portal.targets.target00.UID()
    for name in ("target01", "target02"):
        setattr(portal.targets[name], ATTRIBUTE_NAME, uid)
        portal.targets[name].reindexObject()
    transaction.commit()
    transaction.begin()
    catalog = portal.portal_catalog
    expected = [f"/plone/targets/target0{number}" for number in range(3)]
    assert [brain.getPath() for brain in catalog.unrestrictedSearchResults(UID=uid)] == expected
    result_cache().clear()
    catalog._core.announce("UID", [uid, portal.page.UID()], "test")
    assert len(catalog.unrestrictedSearchResults(UID=uid)) == 3
    assert [brain.getPath() for brain in catalog.unrestrictedSearchResults(UID=uid)] == expected


# -- a page


def answered(site: Site, login: str | None, path: str = "/plone/page", **query: Any) -> tuple[Any, Traffic]:
    """Return the JSON of the page for *login*, and the messages of the request."""
    with traced_requests(site.db) as traffic:
        response = site.web.get(path, login, accept="application/json", **query)
    assert response.status == 200, response.text
    return response.json, traffic[0]


@contextmanager
def nothing_announced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr("plone.pgcatalog.core.catalog.Catalog.announce", lambda *args: None)
        yield


@pytest.mark.parametrize("visitor", VISITORS)
def test_page_with_links_sends_two_messages_after_a_save(
    shared_site: Site, visitor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for links and images, one for teasers: teasers are restricted to objects visible to the visitor."""
    login = VISITORS[visitor]
    for _ in range(2):
        # The process reads the lists of keywords, and loads the objects.
        answered(shared_site, login)
        volto.save_other(shared_site)
    with nothing_announced(monkeypatch):
        alone, _ = answered(shared_site, login)
    _, quiet = answered(shared_site, login)
    volto.save_other(shared_site)
    together, traffic = answered(shared_site, login)
    assert together == alone
    assert len(together["blocks"]) == volto.LINKS + volto.FEW + volto.FEW + 1
    assert traffic.round_trips - quiet.round_trips == 2
    assert len(traffic.matching('FROM "pgcatalog_')) <= 2


#: Paths of requests, and their parameters.
REQUESTS: dict[str, dict[str, Any]] = {
    "/plone/page": {"expand": volto.EXPANSIONS},
    "/plone/@search": {"fullobjects": 1, "portal_type": ["Document", "Image"], "b_size": 12, "sort_on": "path"},
}


@pytest.mark.parametrize("visitor", VISITORS)
@pytest.mark.parametrize("path", REQUESTS)
def test_expanded_page_and_pages_in_a_result_are_the_same_with_fewer_messages(
    shared_site: Site, path: str, visitor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    login, query = VISITORS[visitor], REQUESTS[path]
    if login is None and "expand" in query:
        query = {"expand": query["expand"].replace("types,", "")}
    volto.save_other(shared_site)
    together, traffic = answered(shared_site, login, path, **query)
    with nothing_announced(monkeypatch):
        alone, _ = answered(shared_site, login, path, **query)
    assert together == alone
    assert len(traffic.matching('FROM "pgcatalog_')) <= 7


def first_answer(dsn: str, login: str | None, path: str = "/plone/page", **query: Any) -> tuple[Any, int]:
    """Return the answer of a new process, and its number of messages."""
    with sites.opened(dsn) as db:
        site = Site(db)
        site.web.get("/plone/other", MANAGER, accept="application/json")
        answer, traffic = answered(site, login, path, **query)
        return answer, traffic.round_trips


def test_first_request_of_a_process_loads_the_linked_objects_together(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, messages = first_answer(dsn, None)
    monkeypatch.setenv("PGCATALOG_PREFETCH_BATCH", "0")
    alone, messages_alone = first_answer(dsn, None)
    assert together == alone
    assert messages_alone - messages >= volto.LINKS + volto.FEW - 2


# -- services


def test_relations_and_their_objects_are_loaded_together(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"source": "/related", "relation": "relatedItems"}
    together, messages = first_answer(dsn, MANAGER, "/plone/@relations", **query)
    monkeypatch.setattr("plone.pgcatalog.restapi.relations.load_relations", lambda *args: None)
    alone, messages_alone = first_answer(dsn, MANAGER, "/plone/@relations", **query)
    assert together == alone
    assert together["relations"]["relatedItems"]["items_total"] == volto.LINKS + volto.FEW
    assert messages <= 30 < 100 <= messages_alone


RELATIONS: list[dict[str, str]] = [
    *(
        {},
        {"target": "/targets/target00"},
        {"source": "/page", "target": "/targets/target01"},
        {"source:list": "/page"},
    ),
    *({"source": source} for source in ("/nowhere", "nothing", "/page")),
    *({"relation": name} for name in ("isReferencing", "none")),
    *({"onlyBroken": "1", **more} for more in ({}, {"relation:list": "isReferencing"})),
]


@pytest.mark.parametrize("query", RELATIONS, ids=str)
@pytest.mark.parametrize("visitor", VISITORS)
def test_relations_are_those_of_plone(
    shared_site: Site, query: dict[str, str], visitor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply() -> Any:
        response = shared_site.web.get("/plone/@relations", VISITORS[visitor], accept="application/json", **query)
        return response.status, response.body

    ours = reply()
    monkeypatch.setattr(RelationsGet, "reply", GetRelations.reply)
    assert ours == reply()


def test_link_integrity_searches_for_all_uids_at_once(shared_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with shared_site.inside() as portal:
        uids = uids_of(portal)

    def ask() -> tuple[Any, list[str]]:
        answered(shared_site, MANAGER, "/plone/@linkintegrity", uids=uids)
        volto.save_other(shared_site)
        answer, traffic = answered(shared_site, MANAGER, "/plone/@linkintegrity", uids=uids)
        return answer, traffic.matching('WHERE "uid"')

    together, messages = ask()
    assert len(together) == len(TARGETS)
    assert len(messages) == 1
    with nothing_announced(monkeypatch):
        alone, messages = ask()
    assert alone == together
    assert len(messages) == len(TARGETS)


def test_link_integrity_of_an_invalid_uid_is_that_of_plone(shared_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(uids: Any) -> Any:
        response = shared_site.web.get("/plone/@linkintegrity", MANAGER, accept="application/json", uids=uids)
        return response.status, response.body

    invalid: tuple[Any, ...] = (["\0"], ["x" * 2000], ["/plone"], ["' OR 1=1"], "f" * 32)
    ours = list(map(reply, invalid))
    with nothing_announced(monkeypatch):
        assert ours == list(map(reply, invalid))


# -- the same answers as single searches


def seen(brain: Any) -> tuple[Any, ...]:
    """Return the values of *brain*, and the path of its object."""
    values = [getattr(brain, name) for name in ("Title", "UID", "review_state", "portal_type", "Subject", "getId")]
    return brain.getPath(), brain.getURL(), brain.getRID(), values, path_of_object(brain)


def path_of_object(brain: Any) -> Any:
    """Return the path of the object of *brain*; None without an object.

    A deletion is processed by the next search.  If that is behind a savepoint that is rolled back, Plone's queue has lost it.
    """
    with suppress(KeyError):
        return brain._unrestrictedGetObject().getPhysicalPath()
    return None


def searched(portal: Any, uid: str, **query: Any) -> Any:
    results = portal.portal_catalog.unrestrictedSearchResults(UID=uid, **query)
    return len(results), [seen(brain) for brain in results]


def searched_as_visitor(portal: Any, uid: str) -> Any:
    results = portal.portal_catalog.searchResults(UID=uid)
    return bool(results) and seen(results[0])


def found_object(portal: Any, uid: str) -> Any:
    with suppress(Unauthorized):
        found = uuids.uuidToObject(uid)
        return found is not None and found.getPhysicalPath()


KINDS: dict[str, Callable[[Any, str], Any]] = {
    "unrestricted": searched,
    "restricted": searched_as_visitor,
    "sorted": lambda portal, uid: searched(portal, uid, sort_on="modified", sort_order="descending"),
    "by position": lambda portal, uid: searched(portal, uid, sort_on="getObjPositionInParent"),
    "page": lambda portal, uid: searched(portal, uid, b_start=0, b_size=5),
    "of a type": lambda portal, uid: searched(portal, uid, portal_type="Document"),
    "brain": lambda portal, uid: (brain := uuids.uuidToCatalogBrain(uid)) and seen(brain),
    "object": found_object,
    "path": lambda portal, uid: uuids.uuidToPhysicalPath(uid),
    "url": lambda portal, uid: uuids.uuidToURL(uid),
}


def edit(portal: Any, name: str) -> None:
    portal.targets[name].setTitle(f"{portal.targets[name].Title()}!")
    portal.targets[name].reindexObject()


def publish(portal: Any, name: str) -> None:
    obj = portal.targets[name]
    published = portal.portal_workflow.getInfoFor(obj, "review_state") == "published"
    portal.portal_workflow.doActionFor(obj, "retract" if published else "publish")


def expire(portal: Any, name: str) -> None:
    portal.targets[name].setExpirationDate(DateTime("2001/01/01 UTC"))
    portal.targets[name].reindexObject()


CHANGES: dict[str, Callable[[Any, str], None]] = {
    "edit": edit,
    "publish": publish,
    "rename": lambda portal, name: portal.targets.manage_renameObject(name, f"{name}x"),
    "move": lambda portal, name: portal.manage_pasteObjects(portal.targets.manage_cutObjects([name])),
    "uncatalog": lambda portal, name: portal.targets[name].unindexObject(),
    "delete": lambda portal, name: portal.targets.manage_delObjects([name]),
    "clear": lambda portal, name: portal.portal_catalog.manage_catalogClear(),
    "rebuild": lambda portal, name: portal.portal_catalog.clearFindAndRebuild(),
    "expire": expire,
    "add a column": lambda portal, name: portal.portal_catalog.addColumn(
        f"column{len(portal.portal_catalog.schema())}"
    ),
}
DELETION = ("change", "delete", "target00")
TARGETS = [f"target{number:02}" for number in range(6)]
STEPS = st.one_of(
    st.tuples(st.just("search"), st.sampled_from(sorted(KINDS)), st.sampled_from(PEOPLE)),
    st.tuples(st.just("change"), st.sampled_from(sorted(CHANGES)), st.sampled_from(TARGETS)),
    st.tuples(st.sampled_from(["savepoint", "roll back", "abort", "announce"])),
)


def uids_of(portal: Any) -> list[str]:
    return [portal.targets[name].UID() for name in TARGETS]


def announced(portal: Any) -> list[str]:
    """Announce searches for the UIDs of TARGETS; return these."""
    uids = uids_of(portal)
    portal.portal_catalog._core.announce("UID", uids, "test")
    return uids


def same_for_all(portal: Any, uids: list[str], kind: str, person: str | None) -> None:
    """Check that each search for one of *uids* has the same answer as without announcements and caches."""
    catalog, search = portal.portal_catalog, KINDS[kind]
    catalog._core.announce("UID", uids, object())
    with acting_as(portal, person):
        together = [search(portal, uid) for uid in uids]
        session = catalog._core.session
        session.announced.clear()
        result_cache().clear()
        assert together == [search(portal, uid) for uid in uids]


@pytest.mark.parametrize("examples", [6, pytest.param(40, marks=pytest.mark.slow)])
def test_announced_searches_answer_as_single_ones(shared_site: Site, examples: int) -> None:
    """For each visitor, with pending changes, behind savepoints, and behind each way to end a transaction."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(STEPS, min_size=2, max_size=12))
    @example([DELETION, ("savepoint",), ("search", "brain", None), ("change", "delete", "target01"), ("roll back",)])
    def check(steps: list[tuple[str, ...]]) -> None:
        with sites.inside(shared_site.db) as portal:
            run_steps(portal, steps)

    check()


def run_steps(portal: Any, steps: list[tuple[str, ...]]) -> None:
    uids = [*uids_of(portal), portal.page.UID(), "f" * 32]
    savepoint = None
    for step, *more in steps:
        if step == "search":
            same_for_all(portal, uids, more[0], more[1])
        elif step == "change" and more[1] in portal.targets:
            CHANGES[more[0]](portal, more[1])
        elif step == "savepoint":
            savepoint = transaction.savepoint()
        elif step == "roll back" and savepoint is not None and savepoint.valid:
            savepoint.rollback()
        elif step == "abort":
            transaction.abort()
            savepoint = None
        elif step == "announce":
            portal.portal_catalog._core.announce("UID", uids, object())
            searched(portal, uids[0])
    same_for_all(portal, uids, "unrestricted", None)
    same_for_all(portal, uids, "path", None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("person", PEOPLE, ids=str)
def test_each_kind_of_search_answers_each_visitor_as_a_single_one(shared_filled: Any, kind: str, person: str) -> None:
    same_for_all(shared_filled, uids_of(shared_filled), kind, person)


def test_rows_of_a_state_that_was_rolled_back_are_not_used(shared_filled: Any) -> None:
    shared_filled.other.reindexObject()
    savepoint = transaction.savepoint()
    uids = announced(shared_filled)
    for title in ("First", "Second"):
        shared_filled.targets.target01.setTitle(title)
        shared_filled.targets.target01.reindexObject()
        assert [uuids.uuidToCatalogBrain(uid).Title for uid in uids[:3]] == ["Target 0", title, "Target 2"]
        savepoint.rollback()
    assert uuids.uuidToCatalogBrain(uids[1]).Title == "Target 1"


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_announced_searches_answer_as_single_ones_behind_each_change(shared_filled: Any, change: str) -> None:
    uids = announced(shared_filled)
    assert searched(shared_filled, uids[0])[0] == 1
    CHANGES[change](shared_filled, "target01")
    together = [searched(shared_filled, uid) for uid in uids]
    shared_filled.portal_catalog._core.session.announced.clear()
    result_cache().clear()
    assert together == [searched(shared_filled, uid) for uid in uids]


def test_one_visitor_is_not_answered_as_another(shared_filled: Any) -> None:
    """In one transaction with the same announcement: a program may act for several users."""
    uids = announced(shared_filled)
    seen_by_manager = [bool(searched_as_visitor(shared_filled, uid)) for uid in uids]
    with acting_as(shared_filled, None):
        seen_by_visitor = [bool(searched_as_visitor(shared_filled, uid)) for uid in uids]
    assert seen_by_manager == [True] * len(uids)
    assert seen_by_visitor == [number % 2 == 0 for number in range(len(uids))]


def test_announcements_end_with_the_transaction(shared_filled: Any) -> None:
    for end in (transaction.commit, transaction.abort):
        assert searched(shared_filled, announced(shared_filled)[0])[0] == 1
        end()
        assert shared_filled.portal_catalog._core.session.announced == {}


def test_text_with_links_sends_few_messages(portal: Any) -> None:
    names = [f"target{number:02}" for number in range(20)]
    first, links = (
        "".join(f'<p><a href="{volto.reference(portal.targets[name])}">there</a></p>' for name in each)
        for each in (names[:1], names)
    )
    alsoProvides(portal.REQUEST, IPGCatalogLayer)
    RichTextValue(first, "text/html", "text/x-html-safe").output_relative_to(portal.page)
    result_cache().clear()
    transaction.begin()
    with traced(portal) as traffic:
        html = RichTextValue(links, "text/html", "text/x-html-safe").output_relative_to(portal.page)
    assert all(f'"{portal.targets[name].absolute_url()}"' in html for name in names)
    assert len(traffic[0].matching('FROM "pgcatalog_')) == 1
