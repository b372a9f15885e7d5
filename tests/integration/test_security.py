"""No user finds, reads or calls more than on a site with Plone's own catalog."""

from AccessControl import getSecurityManager
from AccessControl import Unauthorized
from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SpecialUsers import nobody
from AccessControl.ZopeGuards import guarded_getattr
from DateTime import DateTime
from tests.integration import site as sites
from tests.integration.bad_values import a_record
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import FUTURE
from tests.integration.people import INACTIVE
from tests.integration.people import make_content
from tests.integration.people import PAST
from tests.integration.people import PEOPLE
from tests.integration.people import publish
from tests.integration.people import run_script
from tests.integration.people import share
from tests.integration.people import viewable
from typing import Any

import pytest
import transaction


def fill(portal: Any) -> None:
    add_users(portal)
    make_content(portal)


SHARED = fill


def paths(results: Any) -> set[str]:
    return {brain.getPath() for brain in results}


# -- hits of users


@pytest.mark.parametrize("user", PEOPLE)
def test_hits_are_exactly_the_viewable_objects(compared: Any, user: Any) -> None:
    ours, oracle, portal = compared
    with acting_as(portal, user):
        mine = viewable(portal, ours)
        active = {path for path, is_active in mine.items() if is_active}
        allowed = set(mine) if getSecurityManager().checkPermission(INACTIVE, portal) else active
        for query in ({"path": "/plone"}, {"portal_type": "Document"}, {"SearchableText": "needle"}, {}):
            expected = {p for p in allowed if p in paths(oracle.unrestrictedSearchResults(query or {"path": "/"}))}
            assert paths(ours.searchResults(query)) == paths(oracle.searchResults(query)) == expected
            assert paths(ours(**query)) == paths(ours.search(dict(query))) == expected
        assert paths(ours(show_inactive=True)) == paths(oracle(show_inactive=True)) == set(mine)
        assert paths(ours(show_inactive=False)) == paths(oracle(show_inactive=False)) == active
        # Counts reveal no hidden objects.
        limited = [c(portal_type="Document", sort_on="getId", sort_limit=2).actual_result_count for c in (ours, oracle)]
        assert limited[0] == limited[1]


ROLES = ["Manager", "Editor", "Anonymous", "user:admin", "user:boss"]


#: Parameters that a caller might send to see more.
TRICKS: list[dict[str, Any]] = [
    {"allowedRolesAndUsers": ROLES},
    {"allowedRolesAndUsers": tuple(ROLES)},
    {"allowedRolesAndUsers": "Manager"},
    {"allowedRolesAndUsers": {"query": ROLES}},
    {"allowedRolesAndUsers": {"query": "A", "range": "min"}},
    {"allowedRolesAndUsers": {"query": ROLES, "operator": "or"}},
    {"allowedRolesAndUsers": {"not": "nobody"}},
    {"allowedRolesAndUsers": {"not": ["nobody"]}},
    {"allowedRolesAndUsers": {"query": ROLES, "not": "nobody"}},
    {"allowedRolesAndUsers": a_record(query=ROLES)},
    *({"allowedRolesAndUsers": None}, {"allowedRolesAndUsers_not": "nobody"}),
    *({"allowedRolesAndUsers_not": ["nobody"]}, {"allowedRolesAndUsers_range": "min"}),
    *({"allowedRolesAndUsers_range": "min:max"}, {"allowedRolesAndUsers_usage": "range:min"}),
    *({"allowedRolesAndUsers_operator": "or"}, {"allowedRolesAndUsers_query": ROLES}),
    {"allowedRolesAndUsers": "Manager", "allowedRolesAndUsers_range": "min"},
    {"effectiveRange": PAST - 1},
    {"effectiveRange": None},
    {"effectiveRange": {"query": PAST - 1}},
    {"effectiveRange": {"not": PAST}},
    {"effectiveRange": a_record(query=FUTURE + 1)},
    *({"effectiveRange_range": "min"}, {"effectiveRange_usage": "range:min"}, {"effectiveRange_operator": "and"}),
    *({"effectiveRange_not": PAST}, {"sort_on": "allowedRolesAndUsers"}, {"sort_on": "effectiveRange"}),
]
WAYS: dict[str, Any] = {
    "query dict": lambda catalog, query: catalog.searchResults(query),
    "keywords": lambda catalog, query: catalog.searchResults(**query),
    "both": lambda catalog, query: catalog.searchResults(query, **query),
    "split": lambda catalog, query: catalog.searchResults({"path": "/plone"}, **query),
    "call": lambda catalog, query: catalog(query),
    "call with keywords": lambda catalog, query: catalog(**query),
    "search": lambda catalog, query: catalog.search(query),
    "search, unmerged": lambda catalog, query: list(catalog.search(query, merge=0)),
}


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize("way", WAYS)
def test_no_trick_changes_the_hits(compared: Any, user: Any, way: str) -> None:
    ours, _, portal = compared
    with acting_as(portal, user):
        honest = paths(WAYS[way](ours, {"path": "/plone"}))
        sees_inactive = getSecurityManager().checkPermission(INACTIVE, portal)
        for trick in TRICKS:
            if "effectiveRange" in trick and sees_inactive:
                continue  # then an ordinary query
            assert paths(WAYS[way](ours, {"path": "/plone", **trick})) == honest, trick


@pytest.mark.parametrize("user", [None, "mara"])
@pytest.mark.parametrize("trick", TRICKS, ids=str)
def test_a_request_is_no_query(compared: Any, user: Any, trick: Any) -> None:
    """A request object is ignored by searchResults; search() reads it as a mapping."""
    from Testing.makerequest import makerequest

    def request() -> Any:
        made = makerequest(portal.getPhysicalRoot().aq_base).REQUEST
        made.form.update({"path": "/plone", **trick})
        made.other.update(made.form)
        return made

    ours, oracle, portal = compared
    with acting_as(portal, user):
        honest = paths(ours.search({"path": "/plone"}))
        assert paths(ours.searchResults(request())) == paths(oracle.searchResults(request()))
        assert paths(ours.searchResults(request())) <= set(viewable(portal, ours))
        assert paths(ours.search(request())) == honest


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize(
    "path",
    [
        *("/plone/closed", "/plone/closed/late-for-mara", ["/plone/closed/late-for-mara", "/plone/public"]),
        *({"query": "/plone/closed/late-for-mara", "depth": 0}, {"query": ["/plone/closed"], "depth": 1}),
        *("/plone/no-such-folder", ["/plone/no-such-folder", "/plone/closed/late-for-mara"], "", "/"),
    ],
    ids=str,
)
def test_inactive_content_by_path_is_found_as_in_zcatalog(compared: Any, user: Any, path: Any) -> None:
    ours, oracle, portal = compared
    with acting_as(portal, user):
        assert paths(ours.searchResults(path=path)) == paths(oracle.searchResults(path=path))
        assert paths(ours.searchResults({"path": path})) == paths(oracle.searchResults({"path": path}))
        assert paths(ours.search({"path": path})) == paths(oracle.search({"path": path}))


# -- from one moment to the next


def test_retracted_page_disappears_at_once(db: Any, portal: Any, catalog: Any) -> None:
    add_users(portal)
    page = create(portal, "Document", "page", title="needle")

    def found(by: Any = None) -> set[str]:
        with acting_as(portal, by):
            return paths(catalog(SearchableText="needle"))

    assert not found()
    publish(page)
    assert found() == {"/plone/page"}
    transaction.commit()
    assert found() == {"/plone/page"}
    portal.portal_workflow.doActionFor(page, "retract")
    assert not found()
    assert found("edith") == {"/plone/page"}
    transaction.abort()
    assert found() == {"/plone/page"}
    portal.portal_workflow.doActionFor(portal.page, "retract")
    transaction.commit()
    assert not found()
    with sites.application(db, transaction.TransactionManager()) as other:
        newSecurityManager(None, nobody.__of__(other.plone.acl_users))
        assert not paths(other.plone.portal_catalog(SearchableText="needle"))


def test_private_folder_hides_children_that_inherit(portal: Any, catalog: Any) -> None:
    add_users(portal)
    folder = create(portal, "Folder", "folder")
    portal.portal_workflow.setChainForPortalTypes(("Link",), ())
    for name in ("one", "two"):
        create(folder, "Link", name)
    publish(folder)
    transaction.commit()
    with acting_as(portal, None):
        assert paths(catalog(path="/plone/folder")) == {"/plone/folder", "/plone/folder/one", "/plone/folder/two"}
    portal.portal_workflow.doActionFor(folder, "retract")
    for _ in range(2):
        with acting_as(portal, None):
            assert not paths(catalog(path="/plone/folder"))
        transaction.commit()


def test_expired_page_disappears_at_once(portal: Any, catalog: Any) -> None:
    add_users(portal)
    page = create(portal, "Document", "page")
    publish(page)
    transaction.commit()
    page.setExpirationDate(DateTime() - 1)
    page.reindexObject(idxs=["effectiveRange", "expires"])
    for _ in range(2):
        with acting_as(portal, None):
            assert not paths(catalog(getId="page"))
            assert paths(catalog(getId="page", show_inactive=True)) == {"/plone/page"}
        transaction.commit()


def test_granted_or_revoked_role_applies_at_once(portal: Any, catalog: Any) -> None:
    add_users(portal)
    create(create(portal, "Folder", "folder"), "Document", "page", title="needle")
    transaction.commit()

    def mara_finds() -> set[str]:
        with acting_as(portal, "mara"):
            return paths(catalog(SearchableText="needle"))

    for principal in ("mara", "staff"):
        assert not mara_finds()
        share(portal.folder, principal, "Reader")
        assert mara_finds() == {"/plone/folder/page"}
        transaction.commit()
        assert mara_finds() == {"/plone/folder/page"}
        portal.folder.manage_delLocalRoles([principal])
        portal.folder.reindexObjectSecurity()
        assert not mara_finds()
        transaction.commit()


def test_object_created_and_shared_in_one_transaction_is_found(portal: Any, catalog: Any) -> None:
    add_users(portal)
    with acting_as(portal, "boss"):
        page = create(portal, "Document", "page", title="needle")
        page.manage_setLocalRoles("mara", ["Reader"])
        page.reindexObjectSecurity()
    transaction.commit()
    roles = catalog.getIndexDataForRID(catalog.getrid("/plone/page"))["allowedRolesAndUsers"]
    assert {"user:mara", "user:boss"} <= set(roles)
    assert "Anonymous" not in roles
    with acting_as(portal, "mara"):
        assert paths(catalog(SearchableText="needle")) == {"/plone/page"}


# -- permissions of code


def verdict(obj: Any, name: str) -> str:
    try:
        guarded_getattr(obj, name)
    except Unauthorized:
        return "refused"
    except AttributeError:
        return "missing"
    return "allowed"


def names_of(*objects: Any) -> list[str]:
    return sorted({n for obj in objects for n in dir(obj) if not n.startswith("_") and not n.endswith("__roles__")})


#: Methods that ZCatalog lacks; they return no more than searchResults.
BEYOND = {"did_you_mean", "facets", "iterate", "more_like_this", "suggest"}


@pytest.mark.parametrize("user", PEOPLE)
def test_restricted_code_may_call_the_methods_of_zcatalog(compared: Any, user: Any) -> None:
    ours, oracle, portal = compared
    with acting_as(portal, user):
        mine = {name: verdict(ours, name) for name in names_of(ours, oracle) if name not in BEYOND}
        assert mine == {name: verdict(oracle, name) for name in mine}
        assert {verdict(ours, name) for name in BEYOND} == {verdict(ours, "searchResults")}


#: Methods that some index types of a stock site lack; they return no more than the other methods.
READING = {"getCounter", "histogram", "indexSize", "items", "query_index", "referencedObjects", "uniqueValues"}
#: Stock index objects let any code call these.
WRITING = {"clear", "index_object", "unindex_object"}


@pytest.mark.parametrize("user", PEOPLE)
def test_restricted_code_may_do_no_more_to_an_index(compared: Any, user: Any) -> None:
    ours, oracle, portal = compared
    with acting_as(portal, user):
        for name in oracle.indexes():
            mine, theirs = ours._catalog.indexes[name], oracle._catalog.indexes[name]
            allowed = {n for n in names_of(mine) if verdict(mine, n) == "allowed"}
            assert allowed - READING <= {n for n in names_of(theirs) if verdict(theirs, n) == "allowed"}
            assert user == "boss" or not allowed & WRITING


@pytest.mark.parametrize("user", PEOPLE)
def test_restricted_code_reads_brains_and_results_as_before(compared: Any, user: Any) -> None:
    ours, oracle, portal = compared
    with acting_as(portal, user):
        mine, theirs = ours(getId="open-now"), oracle(getId="open-now")
        assert len(mine) == len(theirs) > 0
        for name in names_of(theirs[0]):
            assert verdict(mine[0], name) == verdict(theirs[0], name), name
        for name in ("actual_result_count", "slice"):
            assert verdict(mine, name) == verdict(theirs, name), name


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize(
    "body",
    [
        "return [b.getPath() for b in catalog(path='/plone', sort_on='path')]",
        "return [b.getPath() for b in catalog.searchResults({'path': '/plone'}, sort_on='path')[:3]]",
        "return len(catalog.searchResults(allowedRolesAndUsers='Manager', path='/plone'))",
        "return [b['Title'] for b in catalog(path='/plone', sort_on='path')]",
        "return [b.Title for b in catalog(path='/plone', sort_on='path')]",
        "return len(catalog.unrestrictedSearchResults(path='/plone'))",
        "return len(catalog.searchAll())",
        "return len(catalog.getAllBrains())",
        "return catalog.getIndexDataForRID(1)",
        "return catalog.getIndexDataForUID('/plone/closed/draft-now')['Title']",
        "return catalog.getMetadataForUID('/plone/closed/draft-now')['Title']",
        "return sorted(catalog.uniqueValuesFor('portal_type'))",
        "return catalog.getobject(catalog.getrid('/plone/closed/draft-now')).getId()",
        "return catalog.resolve_path('/plone/closed/draft-now').getId()",
        "return [i.getId() for i in catalog.index_objects()]",
        "return [i.getId() for i in catalog.getIndexObjects()]",
        "return sorted(catalog.Indexes.objectIds())",
        "return catalog._catalog",
        "return sorted(catalog.schema())",
    ],
)
def test_scripts_get_the_same_results(compared: Any, user: Any, body: str) -> None:
    ours, oracle, portal = compared

    def outcome(catalog: Any) -> Any:
        try:
            return run_script(portal, catalog, body)
        except Exception as error:  # noqa: BLE001  the same exception on both sides is the point
            return type(error)

    with acting_as(portal, user):
        assert outcome(ours) == outcome(oracle)


@pytest.mark.parametrize("user", [user for user in PEOPLE if user != "boss"])
@pytest.mark.parametrize(
    "body",
    [
        *("catalog.manage_catalogClear()", "catalog.refreshCatalog()", "catalog.uncatalog_object('/plone/public')"),
        *("catalog.catalog_object(container.public, '/plone/public')", "catalog.delIndex('Title')"),
        *("catalog.addColumn('secret')", "for i in catalog.index_objects():\n  i.clear()"),
        *("catalog.Indexes['start'].clear()", "catalog._catalog.clear()", "catalog(path='/plone')[0].Title = 'x'"),
    ],
)
def test_scripts_change_nothing(compared: Any, user: Any, body: str) -> None:
    ours, _, portal = compared
    before = ours.getCounter()
    with acting_as(portal, user), pytest.raises((Unauthorized, RuntimeError, TypeError)):
        run_script(portal, ours, body)
    assert ours.getCounter() == before


# -- a brain's object


def lost(portal: Any, catalog: Any, path: str) -> None:
    """Delete the object at *path* without the catalog."""
    container, _, name = path.rpartition("/")
    portal.unrestrictedTraverse(container)._delOb(name)


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize("path", ["/plone/closed/draft-now", "/plone/closed/open-now", "/plone/public/draft-now"])
@pytest.mark.parametrize("removed", [None, "/plone/closed/open-now", "/plone/closed"])
def test_brain_returns_its_object_or_the_same_error(compared: Any, user: Any, path: str, removed: Any) -> None:
    ours, oracle, portal = compared
    name = path.rsplit("/", 1)[1]
    mine, theirs = (
        next(b for b in catalog.unrestrictedSearchResults(getId=name) if b.getPath() == path)
        for catalog in (ours, oracle)
    )
    savepoint = transaction.savepoint()
    if removed is not None:
        lost(portal, ours, removed)
    try:
        with acting_as(portal, user):
            for method in ("getObject", "_unrestrictedGetObject", "getURL"):
                answers = []
                for brain in (mine, theirs):
                    try:
                        answer = getattr(brain, method)()
                        answers.append(answer if isinstance(answer, str) else answer.getPhysicalPath())
                    except Exception as error:  # noqa: BLE001  the same exception on both sides is the point
                        answers.append(type(error))
                assert answers[0] == answers[1]
    finally:
        savepoint.rollback()
