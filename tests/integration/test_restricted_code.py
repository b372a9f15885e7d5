"""Untrusted code (Script (Python), Page Template) can use the Python API, and sees only what its user may see."""

from collections.abc import Iterator
from plone.pgcatalog.query.expression import QueryError
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import make_content
from tests.integration.people import PEOPLE
from tests.integration.people import publish
from tests.integration.people import run_script
from tests.integration.people import viewable
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from zExceptions import Unauthorized

import pytest
import textwrap
import transaction


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Any]:
    """A site with content and users; the tests leave no change."""
    with sites.inside(shared_site.db) as portal:
        add_users(portal)
        make_content(portal)
        publish(create(portal.public, "Document", "tagged", title="Needle & thread", subject=("red", "blue")))
        transaction.commit()
        yield portal


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
def test_script_gets_the_results_of_trusted_code_of_its_user(site: Any, user: Any, body: str) -> None:
    catalog = site.portal_catalog
    with acting_as(site, user):
        assert run_script(site, catalog, body) == trusted(catalog, body)


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize(
    "body",
    [
        "return [b.getPath() for b in catalog.iterate({'path': '/plone'})]",
        "return [b.getPath() for b in catalog.iterate({'path': '/plone', 'allowedRolesAndUsers': ['Manager']})]",
        "return [b.getPath() for b in catalog.iterate(path='/plone', allowedRolesAndUsers='user:boss')]",
        "return [b.getPath() for b in catalog(path='/plone').iterate()]",
    ],
)
def test_stream_in_a_script_has_the_hits_visible_to_its_user(site: Any, user: Any, body: str) -> None:
    catalog = site.portal_catalog
    with acting_as(site, user):
        assert sorted(run_script(site, catalog, body)) == sorted(b.getPath() for b in catalog(path="/plone"))
        assert set(run_script(site, catalog, body)) <= set(viewable(site, catalog))


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
def test_script_cannot_reach_private_attributes(site: Any, user: Any, body: str) -> None:
    with acting_as(site, user), pytest.raises((Unauthorized, ImportError, SyntaxError, RuntimeError)):
        run_script(site, site.portal_catalog, body)


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize(
    "where",
    [
        "Eq('allowedRolesAndUsers', 'Manager')",
        "Or({'allowedRolesAndUsers': ['Manager']}, Eq('getId', 'x'))",
        "Not(Eq('effectiveRange', 'never'))",
        "And(Eq('getId', 'x'), Or(Eq('allowedRolesAndUsers', 'user:boss')))",
    ],
)
def test_query_object_of_a_script_shows_no_hidden_row(site: Any, user: Any, where: str) -> None:
    imports = "from plone.pgcatalog.query.objects import And, Eq, Not, Or"
    for search in ("catalog({0})", "catalog.iterate(where={0})", "catalog.facets({0}, ['getId'])"):
        with acting_as(site, user), pytest.raises(QueryError, match="are set by restricted searches"):
            run_script(site, site.portal_catalog, f"{imports}\nreturn {search.format(where)}")


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


@pytest.mark.parametrize("login", [None, "mara:secret", "boss:secret"])
def test_templates_and_scripts_in_the_site_show_it_to_visitors(site: Any, login: str | None) -> None:
    from Products.PageTemplates.ZopePageTemplate import manage_addPageTemplate
    from Products.PythonScripts.PythonScript import manage_addPythonScript

    if "listing" not in site:
        manage_addPageTemplate(site, "listing", text=TEMPLATE)
        manage_addPythonScript(site, "stream")
        site["stream"].ZPythonScript_edit(
            "", "return '\\n'.join([b.getPath() for b in context.portal_catalog.iterate({'path': '/plone'})])"
        )
        transaction.commit()
    web = Web(site._p_jar.db())
    page, stream = web.get("/plone/listing", login), web.get("/plone/stream", login)
    assert (page.status, stream.status) == (200, 200), (page.text, stream.text)
    with acting_as(site, login and login.partition(":")[0]):
        needles = [brain.getPath() for brain in site.portal_catalog(SearchableText="needle", sort_on="path")]
        everything = {brain.getPath() for brain in site.portal_catalog(path="/plone")}
    assert [f">{path}<" in page.text for path in needles] == [True] * len(needles)
    assert page.text.count("<li>") == len(needles)
    assert f"Document: {len(needles)}" in page.text
    assert "one <mark>needle</mark>" in page.text
    assert set(stream.text.split()) == everything
