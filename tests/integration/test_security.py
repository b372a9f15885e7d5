"""No user finds, reads or calls more than on a site with Plone's own catalog."""

from AccessControl import getSecurityManager
from AccessControl.ZopeGuards import guarded_getattr
from DateTime import DateTime
from Products.PageTemplates.ZopePageTemplate import manage_addPageTemplate
from Products.PythonScripts.PythonScript import manage_addPythonScript
from Testing.makerequest import makerequest
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
from tests.integration.rebuilding import second_site
from tests.integration.web import Site
from typing import Any
from zExceptions import Unauthorized

import pytest
import textwrap
import transaction


def fill(portal: Any) -> None:
    add_users(portal)
    make_content(portal)
    publish(create(portal.public, "Document", "tagged", title="Needle & thread", subject=("red", "blue")))
    manage_addPageTemplate(portal, "listing", text=TEMPLATE)
    manage_addPythonScript(portal, "stream")
    portal["stream"].ZPythonScript_edit("", STREAM)


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
    "iterate": lambda catalog, query: catalog.iterate(query),
    "iterate with keywords": lambda catalog, query: catalog.iterate(**query),
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
def test_a_request_is_no_query(compared: Any, user: Any) -> None:
    """A request object is ignored by searchResults; search() reads it as a mapping."""
    ours, oracle, portal = compared
    with acting_as(portal, user):
        honest = paths(ours.search({"path": "/plone"}))
        for trick in TRICKS:
            request = makerequest(portal.getPhysicalRoot().aq_base).REQUEST
            request.form.update({"path": "/plone", **trick})
            request.other.update(request.form)
            found = paths(ours.searchResults(request))
            assert found == paths(oracle.searchResults(request)), trick
            assert found <= set(viewable(portal, ours))
            assert paths(ours.search(request)) == honest, trick


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


@pytest.fixture
def staffed(portal: Any) -> Any:
    add_users(portal)
    return portal


def found(portal: Any, user: str | None = None, **query: Any) -> set[str]:
    """Return the paths of the hits of *user*."""
    with acting_as(portal, user):
        return paths(portal.portal_catalog(**query))


def test_retracted_page_disappears_at_once(db: Any, staffed: Any) -> None:
    needle = {"SearchableText": "needle"}
    page = create(staffed, "Document", "page", title="needle")
    assert not found(staffed, **needle)
    publish(page)
    assert found(staffed, **needle) == {"/plone/page"}
    transaction.commit()
    assert found(staffed, **needle) == {"/plone/page"}
    staffed.portal_workflow.doActionFor(page, "retract")
    assert not found(staffed, **needle)
    assert found(staffed, "edith", **needle) == {"/plone/page"}
    transaction.abort()
    assert found(staffed, **needle) == {"/plone/page"}
    staffed.portal_workflow.doActionFor(staffed.page, "retract")
    transaction.commit()
    assert not found(staffed, **needle)
    with second_site(db) as other:
        assert not found(other, **needle)


def test_private_folder_hides_children_that_inherit(staffed: Any) -> None:
    folder = create(staffed, "Folder", "folder")
    staffed.portal_workflow.setChainForPortalTypes(("Link",), ())
    for name in ("one", "two"):
        create(folder, "Link", name)
    publish(folder)
    transaction.commit()
    inside = {"path": "/plone/folder"}
    assert found(staffed, **inside) == {"/plone/folder", "/plone/folder/one", "/plone/folder/two"}
    staffed.portal_workflow.doActionFor(folder, "retract")
    for _ in range(2):
        assert not found(staffed, **inside)
        transaction.commit()


def test_expired_page_disappears_at_once(staffed: Any) -> None:
    page = create(staffed, "Document", "page")
    publish(page)
    transaction.commit()
    page.setExpirationDate(DateTime() - 1)
    page.reindexObject(idxs=["effectiveRange", "expires"])
    for _ in range(2):
        assert not found(staffed, getId="page")
        assert found(staffed, getId="page", show_inactive=True) == {"/plone/page"}
        transaction.commit()


def test_granted_or_revoked_role_applies_at_once(staffed: Any) -> None:
    create(create(staffed, "Folder", "folder"), "Document", "page", title="needle")
    transaction.commit()
    needle = {"SearchableText": "needle"}
    for principal in ("mara", "staff"):
        assert not found(staffed, "mara", **needle)
        share(staffed.folder, principal, "Reader")
        for _ in range(2):
            assert found(staffed, "mara", **needle) == {"/plone/folder/page"}
            transaction.commit()
        staffed.folder.manage_delLocalRoles([principal])
        staffed.folder.reindexObjectSecurity()
        assert not found(staffed, "mara", **needle)
        transaction.commit()


def test_object_created_and_shared_in_one_transaction_is_found(staffed: Any) -> None:
    with acting_as(staffed, "boss"):
        share(create(staffed, "Document", "page", title="needle"), "mara", "Reader")
    transaction.commit()
    catalog = staffed.portal_catalog
    roles = catalog.getIndexDataForRID(catalog.getrid("/plone/page"))["allowedRolesAndUsers"]
    assert {"user:mara", "user:boss"} <= set(roles)
    assert "Anonymous" not in roles
    assert found(staffed, "mara", SearchableText="needle") == {"/plone/page"}


# -- permissions of code


def outcome(call: Any, *args: Any) -> Any:
    """Return the result of *call*, or the type of its exception."""
    try:
        return call(*args)
    except Exception as error:  # noqa: BLE001  the same exception on both sides is the point
        return type(error)


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
    with acting_as(portal, user):
        assert outcome(run_script, portal, ours, body) == outcome(run_script, portal, oracle, body)


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


# -- the Python API in untrusted code (Script (Python), Page Template): it shows only what its user may see


TEMPLATE = """\
<ul tal:define="results python:context.portal_catalog(SearchableText='needle', sort_on='path');
                highlighter results/highlighter;
                facet python:results.facets(['portal_type'])['portal_type'];
                snippets python:results.snippets(results[:2])">
  <li tal:repeat="brain python:results.iterate(2)" tal:content="brain/getPath">path</li>
  <b tal:replace="structure python:highlighter.mark('one needle')" />
  <b tal:repeat="name facet" tal:content="python: f'{name}: {facet[name]}'" />
  <b tal:repeat="html snippets/values" tal:replace="structure html" />
</ul>
"""
STREAM = "return '\\n'.join([b.getPath() for b in context.portal_catalog.iterate({'path': '/plone'})])"


STREAMS = [
    "return [b.getPath() for b in catalog.iterate({'path': '/plone'}, batch=2)]",
    "return [b.getPath() for b in catalog.iterate(path='/plone')]",
    "return [b.getPath() for b in catalog(path='/plone', sort_on='created').iterate(3)]",
    "found = []\nfor brain in catalog.iterate({}):\n  found.append(brain['getId'])\nreturn found",
    "return max([b.Title for b in catalog.iterate({})])",
    "return next(catalog.iterate({})).getPath()",
    "return next(iter(catalog.iterate({}))).getPath()",
    "return [b.getObject().getId() for b in catalog.iterate(getId='tagged')]",
    "return [(n, b.getRID()) for n, b in enumerate(catalog.iterate({}))]",
]
HIGHLIGHTERS = [
    "return catalog(SearchableText='needle').highlighter().mark('A needle, <b>')",
    "return catalog(SearchableText='needle').highlighter().snippet('hay ' * 100 + 'needle', length=40)",
    "return catalog(SearchableText='needle').highlighter().has_match('two needles')",
    "return catalog(SearchableText='needle').highlighter().spans('a needle')",
    "return bool(catalog(path='/plone').highlighter())",
    "results = catalog(SearchableText='need*')\nmark = results.highlighter().mark\n"
    "return [mark(b.Title) for b in results]",
]
FACETS = [
    "return [pair for pair in catalog.facets({'path': '/plone'}, ['portal_type'])['portal_type'].items()]",
    "return catalog.facets({'path': '/plone'}, ['portal_type'])['portal_type'].get('Document', 0)",
    "return catalog.facets({'path': '/plone'}, ['Subject'], limit=1)['Subject'].truncated",
    "facet = catalog(path='/plone').facets(['Subject'], limit=None)['Subject']\n"
    "return [(value, facet[value]) for value in facet]",
    "return sum(catalog(path='/plone').facets(['getId'])['getId'].values())",
    "facets = catalog(path='/plone').facets(['Subject', 'portal_type'], exclude_own=True)\n"
    "return [(name, [key for key in facet.keys()]) for name, facet in facets.items()]",
    "ranges = {'getId': {'first half': (None, 'm'), 'second half': ('m', None)}}\n"
    "return [pair for pair in catalog.facets({'path': '/plone'}, ranges=ranges)['getId'].items()]",
    "return len(catalog(path='/plone').facets(['getId'])['getId'])",
    "return catalog(path='/plone').facet_counts['facet_fields']['portal_type']",
    "fields = catalog(path='/plone').facet_counts['facet_fields']\n"
    "return [(name, fields[name]) for name in fields if name in ('Subject', 'review_state')]",
]
RESULTS = [
    "results = catalog(SearchableText='needle')\nsnippets = results.snippets(results[:4], length=60)\n"
    "return [snippets[brain.getRID()] for brain in results[:4] if brain.getRID() in snippets]",
    "return [html for html in catalog(path='/plone').snippets(catalog(SearchableText='needle')).values()]",
    "results = catalog(path='/plone', sort_on='path')\n"
    "return [(b.Title, b['getId'], b.getURL(), b.getRID()) for b in results], len(results), bool(results)",
    "results = catalog(path='/plone', sort_on='path', b_size=2)\nreturn results.actual_result_count, len(results)",
    "results = catalog(path='/plone', sort_on='path')\nreturn [b.getPath() for b in results[1:3]], results[0].getPath()",
    "return [b.getPath() for b in catalog.more_like_this(catalog(getId='tagged')[0], limit=3)]",
    "return [b.getPath() for b in catalog.more_like_this(catalog(getId='tagged')[0].UID)]",
    "return catalog.suggest('need')",
    "return catalog.did_you_mean('neeedle')",
]
QUERY_OBJECTS = [
    "from plone.pgcatalog.query.objects import Eq\nfrom plone.pgcatalog.query.objects import Or\n"
    "return [b.getPath() for b in catalog(where=Or(Eq('getId', 'tagged'), Eq('getId', 'open-now')), sort_on='path')]",
    "from plone.pgcatalog.query.objects import And, In, Not, Path, Range, Text\n"
    "where = And(Text('needle'), Not(Path('/plone/closed'))) & (Range('getId', min='a') | ~In('getId', ['b']))\n"
    "return [b.getPath() for b in catalog(where, sort_on='path')]",
]


def trusted(catalog: Any, body: str) -> Any:
    """Run *body* as unrestricted code."""
    namespace: dict[str, Any] = {}
    exec(f"def probe(catalog):\n{textwrap.indent(body, '  ')}", namespace)
    return namespace["probe"](catalog)


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize("body", [*STREAMS, *HIGHLIGHTERS, *FACETS, *RESULTS, *QUERY_OBJECTS])
def test_script_gets_the_results_of_trusted_code_of_its_user(compared: Any, user: Any, body: str) -> None:
    catalog, _, portal = compared
    with acting_as(portal, user):
        assert run_script(portal, catalog, body) == trusted(catalog, body)


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize(
    "body",
    [
        "return catalog.unrestrictedSearchResults(path='/plone').iterate()",
        "return catalog.iterate({})._catalog",
        "return catalog.iterate({})._compiled",
        "return catalog.iterate({}).materialize()",
        "return catalog(path='/plone')._catalog",
        "return catalog(path='/plone')._asked",
        *(
            f"return catalog(path='/plone').{name}"
            for name in ("catalog", "context", "view", "compiled", "condition", "criteria", "sort")
        ),
        "return catalog(SearchableText='needle').highlighter()._lexicons",
        "return catalog(path='/plone').facet_counts['facet_fields']._results",
        "from plone.pgcatalog.query.objects import DictQuery",
        "from plone.pgcatalog.query.objects import check_name",
        "from plone.pgcatalog.query.objects import Eq\nreturn Eq('getId', 'x').condition",
        "from plone.pgcatalog.query.objects import Eq\nreturn Eq.names",
        "import plone.pgcatalog.compat.catalog",
        "from plone.pgcatalog.catalog import _CatalogCompat",
    ],
)
def test_script_cannot_reach_private_attributes(compared: Any, user: Any, body: str) -> None:
    catalog, _, portal = compared
    with acting_as(portal, user), pytest.raises((Unauthorized, ImportError, SyntaxError, RuntimeError)):
        run_script(portal, catalog, body)


@pytest.mark.parametrize("login", [None, "mara:secret", "boss:secret"])
def test_templates_and_scripts_in_the_site_show_it_to_visitors(
    compared: Any, shared_site: Site, login: str | None
) -> None:
    catalog, _, portal = compared
    page, stream = (shared_site.web.get(f"/plone/{name}", login) for name in ("listing", "stream"))
    assert (page.status, stream.status) == (200, 200), (page.text, stream.text)
    with acting_as(portal, login and login.partition(":")[0]):
        needles = [brain.getPath() for brain in catalog(SearchableText="needle", sort_on="path")]
        everything = paths(catalog(path="/plone"))
    assert [f">{path}<" in page.text for path in needles] == [True] * len(needles)
    assert page.text.count("<li>") == len(needles)
    assert f"Document: {len(needles)}" in page.text
    assert "one <mark>needle</mark>" in page.text
    assert set(stream.text.split()) == everything
