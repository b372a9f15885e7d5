"""Numbers sent by visitors: each is bounded or refused before it causes work."""

from collections.abc import Callable
from collections.abc import Iterator
from DateTime import DateTime
from datetime import date
from decimal import Decimal
from plone.pgcatalog.indexes.path import DEEPEST
from tests.integration.bad_values import answer
from tests.integration.bad_values import CLEAR
from tests.integration.web import Site
from tests.integration.web import Web
from tests.integration.wrong_requests import fill
from tests.integration.wrong_requests import Pairs
from tests.integration.wrong_requests import Service
from tests.integration.wrong_requests import SERVICES
from tests.integration.wrong_requests import zope_refuses
from typing import Any

import pytest


SHARED = fill

#: Integers beyond all values in a catalog -> an equivalent one that ZCatalog processes quickly, too.
FAR = {2**31: 40, 10**20: 40, -(10**20): -40}
WHOLE = (0, -1, 1, 2, True)
ODD = (
    1.5, Decimal("1.5"), float("nan"), float("inf"), Decimal("NaN"), date(2026, 1, 1), DateTime("2026/01/01 UTC"), "1", "x",
    [], [1], {}, None,
)  # fmt: skip
#: Options combined with each option of a path index.
BESIDE: tuple[dict[str, Any], ...] = (
    *({}, {"navtree": 1}, {"navtree": 1, "depth": 0}, {"navtree": 1, "depth": 2}, {"level": 1}),
    {"navtree": 1, "level": 1, "depth": 1},
)
PATHS = ("/plone/folder", "/plone", "/plone/nobody", ["/plone/folder", "/plone"])


@pytest.mark.parametrize("option", ["depth", "level", "navtree_start"])
def test_number_of_a_path_option_is_applied_as_by_zcatalog(both: Any, option: str) -> None:
    ours, oracle = both
    indexes = ("path", "aPathIndex") if option == "level" else ("path",)
    for index, path, beside in ((i, p, b) for i in indexes for p in PATHS for b in (BESIDE if i == "path" else ({},))):
        query: dict[str, Any] = {"query": path, **beside}
        for number in WHOLE:
            expected = answer(oracle, {index: query | {option: number}})
            found = answer(ours, {index: query | {option: number}})
            assert isinstance(expected, Exception) or sorted(found) == sorted(expected), (index, query, number)
        for far, near in FAR.items():
            found = answer(ours, {index: query | {option: far}})
            assert found == answer(ours, {index: query | {option: near}}), (index, query, far)
            expected = answer(oracle, {index: query | {option: near}})
            assert isinstance(expected, Exception) or sorted(found) == sorted(expected), (index, query, far)
        for odd in ODD:
            found = answer(ours, {index: query | {option: odd}})
            if isinstance(found, list):
                # ``navtree_start`` without ``navtree`` has no effect.
                assert found == answer(ours, {index: query}), (index, query, odd)
            assert isinstance(found, (list, *CLEAR)), (index, query, odd, found)
            assert "0x" not in str(found)


def test_level_of_a_single_path_is_bounded(both: Any) -> None:
    for far in (*FAR, "9" * 30, 1e300):
        for index in ("path", "aPathIndex"):
            found = answer(both[0], {index: {"query": [("folder", far)]}})
            assert found == answer(both[0], {index: {"query": [("folder", DEEPEST if str(far)[0] != "-" else -1)]}})
    assert answer(both[0], {"path": {"query": [("folder", float("inf"))]}}) == []


#: Calls with a number other than queries, for code and scripts of a site.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "more_like_this": lambda catalog, n: list(catalog.more_like_this(catalog(getId="page0")[0], n)),
    "suggest": lambda catalog, n: catalog.suggest("wor", n),
    "facets": lambda catalog, n: catalog(portal_type="Document").facets(["Subject"], limit=n),
    "count_up_to": lambda catalog, n: counted(catalog(portal_type="Document"), n),
    "snippets": lambda catalog, n: (found := catalog(SearchableText="words")).snippets(found[:2], n),
    "iterate": lambda catalog, n: len(list(catalog(portal_type="Document").iterate(n))),
    "oid": lambda catalog, n: len(catalog(oid=n)),
    "zoid": lambda catalog, n: len(catalog(zoid=n)),
}


def counted(results: Any, limit: Any) -> int:
    results.count_up_to(limit)
    return int(results.actual_result_count)


@pytest.mark.parametrize("name", CALLS)
def test_number_in_a_call_is_answered_or_refused_by_python(both: Any, name: str) -> None:
    for number in (*WHOLE, *FAR, *ODD):
        try:
            CALLS[name](both[0], number)
        except CLEAR:
            assert number in ODD or number < 1 or name.endswith("oid")


#: Parameters that each service converts to a number.
PARAMETERS = (
    *("b_start", "b_size", "rows", "start", "limit", "count_limit", "facet_limit", "sort_limit", "sort-limit"),
    *("passages", "snippet_length", "group_select", "page", "perPage", "expand.navigation.depth"),
)
TEXTS = (
    *("0", "-1", str(2**31), str(10**20), str(-(10**20)), "-1000000", "99999999999999", "1.5", "NaN", "2026-01-01"),
    *("x", "", "[]", "9" * 5000),
)
OURS = ("@search", "@pgsearch", "@pgsimilar", "@pgsuggest", "@solr", "@solr-suggest")
WORDS: Pairs = [("q", "words"), ("SearchableText", "words"), ("query", "wor"), ("facets", "Subject")]


def numbers() -> Iterator[Pairs]:
    """Yield each parameter, and each option of a path, with each kind of value."""
    for value in TEXTS:
        yield from ([(name, value), *WORDS] for name in PARAMETERS)
        for index in ("path", "aPathIndex"):
            for option in ("depth", "level", "navtree_start"):
                for kind in ("", ":record:int", ":record:float", ":record:date"):
                    if not zope_refuses([(f"a{kind}", value)]):
                        own = [(f"{index}.{option}{kind}", value)]
                        yield from (
                            [*own, (f"{index}.navtree", "1"), *query] for query in ([], [(f"{index}.query", "/plone")])
                        )


@pytest.fixture
def web(shared_site: Site) -> Web:
    return shared_site.web


def refusals(web: Web, service: Service, requests: list[Pairs]) -> list[str]:
    """Return the wrong answers to *requests*: right are 200, and 400 with a reason."""
    found = []
    for pairs in requests:
        response = service.request(web, pairs)
        told = response.status == 400 and ("message" not in response.text or len(response.json["message"]) > 15)
        # Zope itself finds no page for some records.
        if not (response.status in (200, 404) or told) or " at 0x" in response.text or "psycopg" in response.text:
            found.append(f"{pairs!r:.200}: {response.status} {response.text[:300]}")
    return found


@pytest.mark.parametrize(
    ("name", "stride"),
    [
        *((name, 29) for name in OURS),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in OURS),
        *(pytest.param(name, 41, marks=pytest.mark.slow) for name in ("live search", "search page")),
    ],
)
def test_number_in_an_address_is_answered_or_refused(web: Web, name: str, stride: int) -> None:
    assert not refusals(web, SERVICES[name], [*numbers()][::stride])


def test_navigation_tree_of_an_anonymous_visitor_has_no_steps_below_the_root(web: Web) -> None:
    tree = [("path.query", "/plone/folder"), ("path.navtree", "1"), ("path.navtree_start:int", str(-(10**20)))]
    for name in ("@search", "@pgsearch"):
        assert SERVICES[name].request(web, tree).json != {}


FINDS = {"i": "portal_type", "o": "plone.app.querystring.operation.selection.any", "v": ["Document"]}
JSON_NUMBERS = (0, -1, 2**31, 10**20, -(10**20), 1.5, float("nan"), "2026-01-01", "x", [], [1], {}, None)
OPERATIONS = (
    *("string.absolutePath", "string.relativePath", "date.largerThanRelativeDate", "date.lessThanRelativeDate"),
    *("date.between", "int.is", "int.largerThan"),
)


def bodies() -> Iterator[dict[str, Any]]:
    for value in JSON_NUMBERS:
        for name in ("b_start", "b_size", "limit", "facet_limit"):
            yield {"query": [FINDS], "facets": ["Subject"], name: value}
        for operation in OPERATIONS:
            index = "path" if "Path" in operation else "created" if "date" in operation else "getObjPositionInParent"
            for form in (value, f"/plone::{value}", f"..::{value}", [value, value]):
                criterion = {"i": index, "o": f"plone.app.querystring.operation.{operation}", "v": form}
                yield {"query": [criterion], "facets": ["Subject"]}


@pytest.mark.parametrize("stride", [31, pytest.param(1, marks=pytest.mark.slow)])
def test_number_in_a_querystring_search_is_answered_or_refused(web: Web, stride: int) -> None:
    found = []
    for body in [*bodies()][::stride]:
        response = web.send_json("POST", "/plone/@querystring-search", None, body)
        if response.status not in (200, 400):
            found.append(f"{body}: {response.status} {response.text[:300]}")
    assert not found
