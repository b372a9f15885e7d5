"""Searches of all sites of a database: the hits, the rights of the visitor in each site, links, and sites that fail."""

from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SpecialUsers import nobody
from collections.abc import Callable
from collections.abc import Iterator
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from itertools import product
from itertools import zip_longest
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.observe import searches
from plone.pgcatalog.restapi.search import documents
from plone.pgcatalog.restapi.sites import SitesAnswer
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.searchpage import sites as searched
from plone.pgcatalog.searchpage.page import SiteSearch
from plone.restapi.interfaces import IPloneRestapiLayer
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.search_pages import follow
from tests.integration.search_pages import search
from tests.integration.traffic import traced
from tests.integration.two_sites import enter
from tests.integration.two_sites import oid
from tests.integration.two_sites import rebuild
from tests.integration.two_sites import relations
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from zope.interface import alsoProvides

import psycopg
import pytest
import transaction


ROOT_USERS = {"rootmember": ["Member"], "rootreader": ["Reader"]}
MARA = "mara:secret"
#: Visitors, users of the root's user folder, and a user of each site with the same name.
LOGINS = (None, "admin:secret", *(f"{name}:secret" for name in ROOT_USERS), MARA)
NAMES = ("plone", "second")
OTHER = "https://second.example/intranet"


def configure(site: Any, **values: Any) -> None:
    """Set *values* of the registry of *site*."""
    enter(site)
    for name, value in values.items():
        site.portal_registry[f"plone.pgcatalog.{name}"] = value


@pytest.fixture(scope="module")
def database(two_sites_template: str, postgres: Any) -> Iterator[Site]:
    """Two sites that search each other, users of the root's user folder, and a user of each site."""
    with sites.opened(sites.clone(postgres, two_sites_template)) as db:
        with sites.application(db) as app:
            sites.login(app)
            for name, roles in ROOT_USERS.items():
                app.acl_users.userFolderAddUser(name, "secret", roles, [])
            for site in (app.plone, app.second):
                enter(site)
                site.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
                configure(site, all_sites=True, offered_to_sites=True)
                site.acl_users.userFolderAddUser("mara", "secret", ["Member"], [])
                shared = create(site.folder, "Document", "shared", title="Needle shared")
                shared.manage_setLocalRoles("rootmember" if site.id == "second" else "mara", ["Reader"])
                shared.reindexObjectSecurity()
                late = create(site.folder, "Document", "late", title="Needle late", effective="2099-01-01T00:00:00")
                site.portal_workflow.doActionFor(late, "publish")
            app.second.title = "Second site"
            configure(app.second, public_url=f"{OTHER}/")
            transaction.commit()
            for site in (app.plone, app.second):
                counted(db.storage._dsn, site.portal_catalog)
        with connect(db.storage._dsn, "test") as connection:
            connection.execute("ANALYZE")
        yield Site(db)


@pytest.fixture
def web(database: Site) -> Web:
    return database.web


def answer(web: Web, login: str | None = None, path: str = "/plone", /, **query: Any) -> Any:
    response = web.get(f"{path}/@pgsearch", login, "application/json", **({"q": "needle", "sites": "*"} | query))
    assert response.status == 200, response.text
    return response.json


def paths(answer: Any) -> list[str]:
    return [document["path_string"] for document in answer["response"]["docs"]]


def alone(web: Web, login: str | None, site: str) -> list[str]:
    response = web.get(f"/{site}/@pgsearch", login, "application/json", q="needle", rows=100)
    # A user of another site is anonymous in this one, where the same name may be another user's.
    return paths(response.json) if response.status == 200 else []


@pytest.fixture
def app(database: Site) -> Iterator[Any]:
    """The root in a transaction that is rolled back, with the site ``plone`` entered by a manager."""
    with sites.inside(database.db) as portal:
        alsoProvides(portal.REQUEST, IPGCatalogLayer, IPloneRestapiLayer)
        yield portal.getPhysicalRoot()


def ask(app: Any, user: Any = None, **form: Any) -> Any:
    """Return the answer of the site ``plone`` to *user*, by default the present one."""
    app.REQUEST.form = {"q": "needle", "sites": "*"} | form
    if user is not None:
        newSecurityManager(None, user)
    result_cache().clear()
    return SitesAnswer(app.plone, app.REQUEST, documents)()


def of_site(found: Any, name: str) -> list[str]:
    return [path for path in paths(found) if path.startswith(f"/{name}/")]


@pytest.mark.parametrize(("asked", "login"), product(NAMES, LOGINS))
def test_no_visitor_sees_more_than_in_the_site_itself(web: Web, asked: str, login: str | None) -> None:
    found = answer(web, login, f"/{asked}", rows=100)
    in_sites = {name: alone(web, login if name == asked or login != MARA else None, name) for name in NAMES}
    for name, expected in in_sites.items():
        assert of_site(found, name) == expected, name
    assert found["facet_fields"][0][1] == [[name, len(in_sites[name])] for name in (asked, *NAMES) if name in in_sites][
        :1
    ] + [[name, len(in_sites[name])] for name in NAMES if name != asked]
    assert found["response"]["numFound"] == len(paths(found)) == sum(map(len, in_sites.values()))
    # By reciprocal ranks, the own site's first among equal ones.
    rows = zip_longest(in_sites[asked], *(hits for name, hits in in_sites.items() if name != asked))
    assert paths(found) == [path for row in rows for path in row if path]
    assert found["failed_sites"] == []


def test_rights_differ_by_site(web: Web) -> None:
    ids = {login: {path.split("/", 2)[2] for path in paths(answer(web, login, rows=100))} for login in LOGINS}
    assert all(len(answer(web, login, rows=100)["response"]["docs"]) >= 2 for login in LOGINS)
    assert "folder/shared" not in ids[None]
    assert "/second/folder/shared" in paths(answer(web, "rootmember:secret"))
    assert "/plone/folder/shared" not in paths(answer(web, "rootmember:secret"))
    assert "/plone/folder/shared" in paths(answer(web, MARA))
    assert "/second/folder/shared" not in paths(answer(web, MARA, q="needle"))
    assert not any(path.endswith("late") for path in paths(answer(web)))


CONTENT = st.lists(st.sampled_from([*ROOT_USERS, "mara", "group:AuthenticatedUsers", ""]), max_size=3)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.tuples(CONTENT, CONTENT))
def test_random_local_roles_are_those_of_each_site(app: Any, content: Any) -> None:
    sites.return_to(app.plone)
    for site, owners in zip((app.plone, app.second), content, strict=True):
        enter(site)
        for number, owner in enumerate(owners):
            page = create(site.folder, "Document", f"random{number}", title="Needle random")
            if owner:
                page.manage_setLocalRoles(owner.removeprefix("group:"), ["Reader"])
                page.reindexObjectSecurity()
    enter(app.plone)
    mara = app.plone.acl_users.getUser("mara").__of__(app.plone.acl_users)
    for user in (nobody, mara, *(app.acl_users.getUser(name).__of__(app.acl_users) for name in ROOT_USERS)):
        found = ask(app, user, rows="100")
        for site in (app.plone, app.second):
            enter(site)
            newSecurityManager(None, nobody if user is mara and site.id == "second" else user)
            there = site.portal_catalog(SearchableText="needle", path=f"/{site.id}", b_size=100)
            assert of_site(found, site.id) == [brain.getPath() for brain in there], (user, site)
        enter(app.plone)
    transaction.abort()


def not_offered(site: Any) -> None:
    configure(site, offered_to_sites=False)


def private(site: Any) -> None:
    site.manage_permission("View", ["Manager"], acquire=False)


def not_searchable(site: Any) -> None:
    site.portal_catalog.manage_permission("Search ZCatalog", ["Manager"], acquire=False)


@pytest.mark.parametrize("change", [not_offered, private, not_searchable])
def test_closed_site_is_neither_searched_nor_named(app: Any, change: Callable[[Any], None]) -> None:
    change(app.second)
    enter(app.plone)
    found = ask(app, nobody)
    assert paths(found) == ["/plone/folder/open"]
    assert (len(found["sites"]), found["failed_sites"]) == (1, [])
    messages = []
    for name in ("second", "nothing"):
        with pytest.raises(Exception, match=r"list of these: plone$") as error:
            ask(app, nobody, sites=name)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def without_text_index(site: Any) -> None:
    site.portal_catalog.delIndex("SearchableText")


def unknown_index(site: Any) -> None:
    index = site.portal_catalog._indexes.pop("Subject")
    site.portal_catalog._indexes = site.portal_catalog._indexes | {"Subject": index}
    index.meta_type = "Unknown"
    index._p_changed = True


def without_catalog(site: Any) -> None:
    site._delOb("portal_catalog")


def emptied(site: Any) -> None:
    site.portal_catalog.manage_catalogClear()


def without_type_index(site: Any) -> None:
    site.portal_catalog.delIndex("portal_type")


def parts_of_words(site: Any) -> None:
    configure(site, parts_of_words=True, stemming=False, stop_words="en: the")


def other_lexicon(site: Any) -> None:
    lexicon = site.portal_catalog.plone_lexicon
    lexicon._pipeline = lexicon._pipeline[:1]
    lexicon._p_changed = True


def pending(site: Any) -> None:
    create(site.folder, "Document", "new", title="Needle new")


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        *((without_text_index, True), (unknown_index, True), (without_catalog, False), (emptied, False)),
        *(
            (without_type_index, False),
            (parts_of_words, False),
            (other_lexicon, False),
            (pending, False),
            (rebuild, False),
        ),
    ],
)
def test_settings_of_one_site_never_break_another(app: Any, change: Callable[[Any], None], fails: bool) -> None:
    expected = of_site(ask(app), "plone")
    enter(app.second)
    change(app.second)
    enter(app.plone)
    found = ask(app)
    assert of_site(found, "plone") == expected
    assert found["failed_sites"] == (["second"] if fails else [])
    assert bool(of_site(found, "second")) == (change not in (without_catalog, emptied) and not fails)


@pytest.mark.parametrize("damage", ["ALTER TABLE {0} RENAME TO lost", "LOCK TABLE {0} IN ACCESS EXCLUSIVE MODE"])
def test_unreadable_table_of_one_site_never_breaks_another(
    database: Site, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searched, "OTHER_SECONDS", 0.2)
    with sites.inside(database.db) as portal:
        app = portal.getPhysicalRoot()
        alsoProvides(portal.REQUEST, IPGCatalogLayer, IPloneRestapiLayer)
        expected = of_site(ask(app), "plone")
        relation = relations(database.dsn)[oid(app.second.portal_catalog)]
        transaction.abort()
        with psycopg.connect(database.dsn) as connection:
            connection.execute(damage.format(f'"{relation}"'))
            is_lost = "RENAME" in damage
            if is_lost:
                connection.commit()
            found = ask(app)
            transaction.abort()
            if is_lost:
                connection.execute(f'ALTER TABLE lost RENAME TO "{relation}"')
        assert of_site(found, "plone") == expected == paths(found)
        assert found["failed_sites"] == ["second"]
        assert len(paths(ask(app))) == 2 * len(expected)


@pytest.mark.parametrize("rows", ["2", "10"])
def test_two_sites_take_no_more_messages_than_one(app: Any, rows: str) -> None:
    numbers = []
    for names in ("*", "plone", "plone", "*"):
        ask(app, sites=names, rows=rows)
        with traced(app.plone) as traffic:
            ask(app, sites=names, rows=rows)
        numbers.append(traffic[0].round_trips)
    assert numbers == [2] * 4


def test_links_begin_with_the_public_url_of_their_site(web: Web) -> None:
    found = answer(web, "admin:secret")
    urls = {document["path_string"]: document["@id"] for document in found["response"]["docs"]}
    assert urls["/second/folder/open"] == f"{OTHER}/folder/open"
    assert urls["/plone/folder/open"] == "http://nohost/plone/folder/open"
    assert [(site["name"], site["title"], site["@id"]) for site in found["sites"]] == [
        ("plone", "Test", "http://nohost/plone"),
        ("second", "Second site", OTHER),
    ]
    back = answer(web, "admin:secret", "/second")
    urls = {document["path_string"]: document["@id"] for document in back["response"]["docs"]}
    assert urls["/second/folder/open"] == "http://nohost/second/folder/open"


WRONG: list[dict[str, Any]] = [
    *({"sites": "nothing"}, {"sites": ""}, {"sites": "*,plone"}, {"sites": ",".join(["plone"] * 21)}, {"q": ""}),
    *(
        {"q": "*"},
        {"start": 95},
        {"rows": 101},
        {"sort_on": "created"},
        {"sort": "created desc"},
        {"path_prefix": "folder"},
    ),
    *({"path.query": "/second"}, {"facets": "Subject"}, {"cursor": "*"}, {"passages": 1}, {"created": "x"}),
]


@pytest.mark.parametrize("query", WRONG, ids=str)
def test_wrong_request_is_refused(web: Web, query: dict[str, Any]) -> None:
    response = web.get("/plone/@pgsearch", None, "application/json", **({"q": "needle", "sites": "*"} | query))
    assert response.status == 400, response.text


def test_folder_is_not_searched_with_other_sites(web: Web) -> None:
    assert web.get("/plone/folder/@pgsearch", "admin:secret", "application/json", q="needle", sites="*").status == 400


# -- the search page


def data(web: Web, login: str | None = None, path: str = "/plone", /, **query: Any) -> Any:
    query = {"search_page": "1", "SearchableText": "needle"} | query
    response = web.get(f"{path}/@pgsearch", login, "application/json", **query)
    assert response.status == 200, response.text
    return response.json


# Plone's search page finds no late content, @pgsearch does for a manager.
@pytest.mark.parametrize(("asked", "login"), product(NAMES, [login for login in LOGINS if login != "admin:secret"]))
def test_search_page_finds_the_same_in_volto_and_classic(web: Web, asked: str, login: str | None) -> None:
    found, page = answer(web, login, f"/{asked}"), data(web, login, f"/{asked}")
    classic = search(web, login, f"/{asked}", SearchableText="needle")
    assert page["items_total"] == classic.total == found["response"]["numFound"]
    assert [item["@id"] for item in page["items"]] == [item["@id"] for item in found["response"]["docs"]]
    assert len(classic.titles) == len(page["items"])
    [box] = page["facets"]
    assert (box["name"], box["field"], box["title"]) == ("sites", "sites:list", "Site")
    assert [[value["value"], value["count"]] for value in box["values"]] == found["facet_fields"][0][1]
    assert classic.facets == {"sites": {value["value"]: value["count"] for value in box["values"]}}
    assert [item["breadcrumbs"][0]["title"] for item in page["items"]] == [
        {"plone": "Test", "second": "Second site"}[item["site"]] for item in found["response"]["docs"]
    ]
    assert (page["failed_sites"], page["sort"]) == ([], [])


def test_chosen_site_is_searched_alone(web: Web) -> None:
    every = data(web, "admin:secret")
    other = data(web, "admin:secret", **{"sites:list": "second"})
    assert {item["breadcrumbs"][0]["title"] for item in other["items"]} == {"Second site"}
    assert [chip["value"] for chip in other["chips"]] == ["Second site"]
    own = data(web, "admin:secret", **{"sites:list": "plone"})
    assert other["items_total"] + own["items_total"] == every["items_total"]
    # The own site alone has all its facets and orders.
    assert {"sites", "Subject"} <= {box["name"] for box in own["facets"]}
    assert own["sort"]
    classic = search(web, "admin:secret", "/plone", **{"SearchableText": "needle", "sites:list": "second"})
    assert classic.checked == {"second"}
    assert follow(web, classic.chips["Second site"], "admin:secret").total == every["items_total"]


def test_pages_of_merged_hits_continue(web: Web, app: Any) -> None:
    rows = [answer(web, "admin:secret", start=start, rows=2) for start in range(0, 8, 2)]
    assert [path for page in rows for path in paths(page)] == paths(answer(web, "admin:secret"))


def test_search_page_of_two_sites_takes_no_more_messages_than_of_one(app: Any) -> None:
    numbers = []
    for is_on in (True, False) * 2:
        configure(app.plone, all_sites=is_on)
        app.REQUEST.form = {"SearchableText": "needle"}
        result_cache().clear()
        with traced(app.plone) as traffic:
            page = SiteSearch(app.plone, app.REQUEST)
            page.update()
            assert len(page.hits) == (6 if is_on else 3)
            assert page.boxes[0].facet.name == ("sites" if is_on else "Subject")
        numbers.append(traffic[0].round_trips)
    assert numbers[2:] == [2, 2]


@pytest.mark.parametrize("query", [{}, {"sites:list": "second"}])
def test_search_without_a_text_is_of_the_own_site(web: Web, query: dict[str, Any]) -> None:
    response = web.get("/plone/@pgsearch", None, "application/json", search_page="1", **query)
    assert "sites" not in {box["name"] for box in response.json["facets"]}
    assert all("/plone" in item["@id"] for item in response.json["items"])


@pytest.mark.parametrize("counts", [True, False])
def test_search_is_counted_in_its_own_site_only(database: Site, web: Web, counts: bool) -> None:
    with database.inside() as portal:
        configure(portal, record_searches=counts)
    text = f"counted {'here' if counts else 'nowhere'}"
    data(web, SearchableText=text)
    answer(web, q=text)
    assert searches.flush(30)
    with connect(database.dsn, "test") as connection:
        rows = connection.execute("SELECT catalog FROM pgcatalog_searches WHERE words = %s", [text]).fetchall()
    with database.inside() as portal:
        assert rows == ([(oid(portal.portal_catalog),)] if counts else [])


@given(st.lists(st.integers(0, 8), min_size=1, max_size=5))
def test_merged_hits_keep_the_order_of_each_site(numbers: list[int]) -> None:
    parts = []
    for number, size in enumerate(numbers):
        part = searched.SiteHits(searched.Site(None), lambda portal: (None, None))
        part.brains = [(place, number) for place in range(size)]
        parts.append(part)
    assert [brain for _, brain in searched.merged(parts)] == sorted(brain for part in parts for brain in part.brains)
