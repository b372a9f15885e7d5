"""Pages by a cursor: each row once, in order, during concurrent saves, and never by a forged cursor."""

from collections.abc import Iterator
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.needles import fill
from tests.integration.people import add_users
from tests.integration.web import MANAGER
from tests.integration.web import Response
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any

import base64
import json
import pytest
import transaction


def fill_site(portal: Any) -> None:
    fill(portal)
    add_users(portal)
    for number in range(6):
        create(portal, "Event", f"event{number}", title="One title for all", subject=("a", "b")[: number % 3])
    create(portal, "Document", "odd", title="Quotes \" ' and \\, 100 %, \u00fc \U0001f600")


CONTENT = SHARED = fill_site


@pytest.fixture
def web(shared_site: Site) -> Web:
    return shared_site.web


ORDERS = (
    *("getId asc", "getId desc", "modified desc", "sortable_title asc", "sortable_title desc", "portal_type desc"),
    *("is_folderish asc", "path asc", "start desc", "effective desc", "Date desc", "Subject asc", "UID asc"),
)
SORTS: list[dict[str, str]] = [{}, *({"sort": order} for order in ORDERS)]


def ask(web: Web, login: str | None = MANAGER, /, **query: Any) -> Response:
    return web.get("/plone/@pgsearch", login, accept="application/json", snippets="0", **query)


def names(answer: Any) -> list[str]:
    return [doc["path_string"] for doc in answer["response"]["docs"]]


def pages(web: Web, rows: int, **query: Any) -> Iterator[Any]:
    cursor = "*"
    while cursor is not None:
        response = ask(web, **query, rows=rows, cursor=cursor)
        assert response.status == 200, response.text
        yield response.json
        cursor = response.json["next_cursor"]


#: Each sort by pages of five, and two by pages of two, for all tests; the rest for the slow tests.
SIZES = [
    *((sort, 5) for sort in SORTS),
    *((sort, 2) for sort in (SORTS[0], SORTS[-2])),
    *(pytest.param(sort, rows, marks=pytest.mark.slow) for sort in SORTS for rows in (1, 2, 200)),
]


@pytest.mark.parametrize(("sort", "rows"), SIZES, ids=str)
def test_all_pages_together_are_the_whole_answer(web: Web, sort: dict[str, str], rows: int) -> None:
    """Including ties and missing values; without a sort in the order of the record ids."""
    whole = ask(web, **sort, rows=200).json
    total = whole["response"]["numFound"]
    found = list(pages(web, rows, **sort))
    assert [page["response"]["numFound"] for page in found] == [total] * len(found)
    together = [name for page in found for name in names(page)]
    assert len(together) == len(set(together)) == total
    # A page sorted in descending order has its ties by descending record id, as in ZCatalog; a whole result has not.
    assert sorted(together) == sorted(names(whole))
    with sites.inside(web.db) as portal:
        sort_on, _, order = sort.get("sort", "").partition(" ")
        options = {"sort_on": sort_on, "sort_order": "descending" if order == "desc" else ""} if sort else {}
        assert together == [brain.getPath() for brain in portal.portal_catalog(path="/plone", **options)]


def test_cursor_page_has_the_keys_of_other_pages(web: Web) -> None:
    query = {"q": "needle", "sort": "getId asc", "facets": "portal_type", "rows": 5}
    first = web.get("/plone/@pgsearch", MANAGER, accept="application/json", cursor="*", **query).json
    plain = web.get("/plone/@pgsearch", MANAGER, accept="application/json", **query).json
    assert first.pop("next_cursor")
    assert first.pop("@id") != plain.pop("@id")
    assert first == plain
    assert "highlighting" in first["response"]["docs"][0]


def test_each_row_comes_once_while_others_save(db: Any) -> None:
    """Only unchanged rows count: others are added, removed and moved before, at and behind the cursor."""
    web = Web(db)
    query = {"sort": "getId asc", "portal_type": "Document"}
    before = names(ask(web, **query, rows=200).json)
    seen: list[str] = []
    cursor, step = "*", 0
    while cursor:
        answer = ask(web, **query, rows=3, cursor=cursor).json
        seen += names(answer)
        cursor = answer["next_cursor"]
        with sites.inside(web.db) as portal:
            create(portal, "Document", f"aaa{step}")
            if step < 3:
                create(portal, "Document", f"zzz{step}")
            # The row from which the cursor was made.
            folder, _, name = seen[-1].rpartition("/")
            portal.unrestrictedTraverse(folder).manage_delObjects([name])
            transaction.commit()
        step += 1
    assert [name for name in seen if "zzz" not in name] == before
    assert [name for name in seen if "zzz" in name] == [f"/plone/zzz{number}" for number in range(3)]
    assert step > 5


def test_each_page_has_only_rows_visible_to_its_user(web: Web) -> None:
    query = {"sort": "getId asc", "rows": 2}
    cursor = ask(web, **query, cursor="*").json["next_cursor"]
    allowed = names(ask(web, None, sort="getId asc", rows=200).json)
    behind = ask(web, **query, cursor=cursor).json
    for login in (None, "mara:secret"):
        found = ask(web, login, **query, cursor=cursor)
        assert found.status == 200
        assert set(names(found.json)) <= set(names(ask(web, login, sort="getId asc", rows=200).json))
    assert set(names(behind)) - set(allowed)


def refused(response: Response) -> str:
    assert response.status == 400, response.text
    return str(response.json["message"])


def test_foreign_or_forged_cursor_is_refused(web: Web) -> None:
    query = {"sort": "getId asc", "rows": 2}
    cursor = ask(web, **query, cursor="*").json["next_cursor"]
    assert ask(web, **query, cursor=cursor).status == 200
    assert ask(web, sort="getId asc", rows=7, cursor=cursor, facets="Subject").status == 200
    sealed = base64.urlsafe_b64decode(cursor)
    other = base64.urlsafe_b64encode(sealed[:32] + json.dumps(["z", "1"]).encode()).decode()
    changed = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in range(len(sealed))]
    wrong = [
        *("", "x", ".", "..", "\u00fc.\u00fc", "=.=", "*" * 9000, " *", "a." + "A" * 44),
        *(other, cursor[:44], cursor[:-3], f"{cursor}.{cursor}", f"{cursor}."),
        *(base64.urlsafe_b64encode(each).decode() for each in changed),
    ]
    for text in wrong:
        assert "belongs to another search" in refused(ask(web, **query, cursor=text))
    for other_query in (
        {"sort": "getId desc"},
        {"sort": "modified asc"},
        {},
        {"q": "needle", "sort": "getId asc"},
        {"sort": "getId asc", "portal_type": "Event"},
        {"sort": "getId asc", "path_prefix": "odd"},
    ):
        assert "belongs to another search" in refused(ask(web, **other_query, rows=2, cursor=cursor))


def test_cursor_shows_no_value_of_a_row(web: Web) -> None:
    for sort in ("getId asc", "path asc", "Creator asc"):
        answer = ask(web, sort=sort, rows=2, cursor="*").json
        last = names(answer)[-1]
        seen = base64.urlsafe_b64decode(answer["next_cursor"])
        for value in (last, last.rpartition("/")[2], "admin"):
            assert value.encode() not in seen
    assert len({ask(web, sort="getId asc", rows=n, cursor="*").json["next_cursor"][:8] for n in (1, 2, 3)}) == 3


def test_restricted_indexes_and_authors_sort_no_visitors_results(web: Web) -> None:
    for service in ("@pgsearch", "@solr", "@pgsuggest", "odd/@pgsimilar"):
        for name in ("allowedRolesAndUsers", "effectiveRange", "Creator"):
            for parameter, value in (("sort", f"{name} desc"), ("sort_on", name)):
                response = web.get(f"/plone/{service}", None, accept="application/json", **{parameter: value})
                assert response.status in (400, 401), (service, name, response.text)
                if response.status == 400:
                    assert "cannot be sorted by" in response.json["message"]
    assert ask(web, sort="Creator asc", cursor="*").status == 200
    assert "cannot be sorted by" in refused(ask(web, sort="allowedRolesAndUsers asc", cursor="*"))


def test_a_cursor_survives_new_secrets_of_the_site(db: Any) -> None:
    """plone.keyring stores former secrets for a while."""
    from plone.keyring.interfaces import IKeyManager
    from zope.component import getUtility

    web, query = Web(db), {"sort": "getId asc", "rows": 2}
    cursor = ask(web, **query, cursor="*").json["next_cursor"]
    for expected in (200, 200, 200, 200, 400):
        with sites.inside(web.db):
            getUtility(IKeyManager).rotate("_system")
            transaction.commit()
        assert ask(web, **query, cursor=cursor).status == expected


def test_missing_next_page_is_stated(web: Web) -> None:
    assert "relevance" in refused(ask(web, q="needle", cursor="*"))
    assert ask(web, q="needle", sort="getId asc", cursor="*").status == 200
    assert "getObjPositionInParent" in refused(ask(web, sort="getObjPositionInParent asc", cursor="*"))
    assert "rows must be at least 1" in refused(ask(web, cursor="*", rows=0))
    assert "either a cursor or start" in refused(ask(web, cursor="*", start=3))
    nothing = ask(web, portal_type="No Such Type", cursor="*").json
    assert (nothing["response"]["docs"], nothing["next_cursor"]) == ([], None)
    assert "next_cursor" not in ask(web, sort="getId asc").json
