"""Meaningless requests: every service, every index type, every kind of wrong value."""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from tests.integration.content import create
from tests.integration.custom import make_index
from tests.integration.people import publish
from tests.integration.web import MANAGER
from tests.integration.web import Response
from tests.integration.web import Web
from typing import Any
from urllib.parse import quote
from ZPublisher.HTTPRequest import HTTPRequest

import json


Pairs = list[tuple[str, str]]

JSON = "application/json"
#: Errors are JSON, not a rendered page.
ANY = "*/*"


@dataclass(frozen=True)
class Service:
    """A view or service with parameters in its address; *is_stock*: Plone's own, using our catalog."""

    path: str
    accept: str = JSON
    is_stock: bool = False
    login: str | None = None

    def request(self, web: Web, pairs: Pairs) -> Response:
        return web.open(f"{self.path}?{query_string(pairs)}", self.login, self.accept)


SERVICES = {
    "@pgsearch": Service("/plone/@pgsearch"),
    "@pgsuggest": Service("/plone/@pgsuggest"),
    "@pgsimilar": Service("/plone/folder/page0/@pgsimilar"),
    "@solr": Service("/plone/@solr"),
    "@solr-suggest": Service("/plone/@solr-suggest"),
    "search page": Service("/plone/@@search", ANY),
    "live search": Service("/plone/@@ajax-search", ANY),
    "@search": Service("/plone/folder/@search", is_stock=True),
    "@navigation": Service("/plone/folder/@navigation", is_stock=True),
    "@breadcrumbs": Service("/plone/folder/@breadcrumbs", is_stock=True),
    "listing": Service("/plone/folder/listing_view", ANY, is_stock=True),
    "feed": Service("/plone/search_rss", ANY, is_stock=True),
    "ZMI rows": Service("/plone/portal_catalog/manage_catalogView", ANY, login=MANAGER),
    "ZMI row": Service("/plone/portal_catalog/manage_objectInformation", ANY, login=MANAGER),
    "ZMI slow queries": Service("/plone/portal_catalog/manage_slow_queries", ANY, login=MANAGER),
}
ALL_INDEXES = (
    "portal_type",  # FieldIndex
    "Subject",  # KeywordIndex
    "created",  # DateIndex
    "effectiveRange",  # DateRangeIndex
    "start",  # DateRecurringIndex
    "is_folderish",  # BooleanIndex
    "UID",  # UUIDIndex
    "SearchableText",  # ZCTextIndex
    "path",  # ExtendedPathIndex
    "getObjPositionInParent",  # GopipIndex
    "aTopicIndex",
    "aPathIndex",
    "aCompositeIndex",
    "nobody",  # no index has this name
)
ADDED = ("TopicIndex", "PathIndex", "CompositeIndex")

LONG = "9" * 5000
NUMBERS = ("0", "-1", "1", "2147483648", "9223372036854775808", "-9223372036854775809", str(2**70), "1000000000000")
TEXTS = (
    *NUMBERS, LONG, "9" * 4000, "1e400", "NaN", "inf", "-inf", "", " ", "a\0b", "\ud800", "x" * 10_000, "not a date",
    "2026-13-45", "0000-00-00", "0001-01-01", "9999-12-31T23:59:59Z", "10000-01-01", "-9999-01-01", "١٢", "²", "None",
    "[]", "{}", "'", '"', "%", "*", "(", "and", "/plone/folder", "/" * 3000, "/a" * 2000,
)  # fmt: skip
CONVERTERS = [
    *("int", "long", "float", "date", "boolean", "bytes", "json", "tokens", "lines", "required", "record", "records"),
    "list",
]
DEEP = ("[" * 900 + "]" * 900, "[" * 9000 + "]" * 9000)
JSONS = (
    "null", "true", "NaN", "[NaN,1]", "[[1]]", '[null,1,"a"]', '{"a":1}', '{"query":[[1]]}', '{"query":null}',
    '{"not":[[1],null]}', '{"query":{"a":1}}', '{"query":"a","range":5}', '{"query":"a","operator":null}',
    '{"query":"/plone","depth":"x"}', '{"query":[["/plone",1e400]]}', '{"query":["a",1],"range":"min:max"}',
    '[["/plone",999999999999999999999]]', *DEEP,
)  # fmt: skip
#: Parameters of services besides indexes.
PARAMETERS = [
    *("b_start", "b_size", "rows", "start", "limit", "count_limit", "facet_limit", "sort_limit", "sort-limit"),
    *("snippet_length", "group_select", "page", "perPage", "expand", "expand.navigation.depth", "depth", "lang"),
    *("is_multilingual", "snippets", "spellcheck", "collate", "keep_full_solr_response", "fullobjects"),
    *("use_site_search_settings", "metadata_fields", "similar", "as_typed", "q", "query", "text", "path_prefix"),
    *("facets", "facet_ranges", "facet_conditions", "extra_conditions", "fq", "fl", "facet", "facet.Date"),
    *("facet.created", "facet.Subject", "sort", "sort_on", "sort_order", "sort-on", "sort-order", "where"),
    *("show_inactive", "ajax_load", "filterpath", "after", "before", "rid", "hours", "shape", "new", "b_start:int"),
]
#: A search with hits, in each service's parameters.
WORDS: Pairs = [("q", "words"), ("SearchableText", "words"), ("query", "wor"), ("facets", "Subject")]


def fill(portal: Any) -> None:
    """Make a site whose catalog has an index of each type that Plone has."""
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    catalog = portal.portal_catalog
    for meta_type in ADDED:
        module = __import__(f"Products.PluginIndexes.{meta_type}.{meta_type}", fromlist=[meta_type])
        catalog._catalog.addIndex(f"a{meta_type}", make_index(getattr(module, meta_type), catalog))
    folder = create(portal, "Folder", "folder", title="Folder")
    publish(folder)
    for number in range(3):
        publish(create(folder, "Document", f"page{number}", title="Some words", description="word1", subject=("a",)))


def query_string(pairs: Pairs) -> str:
    return "&".join(f"{quote(n, safe='')}={quote(v.encode('utf-8', 'surrogatepass'), safe='')}" for n, v in pairs)


def zope_refuses(pairs: Pairs) -> bool:
    """Return whether Zope itself cannot parse *pairs* as a form (``b_start:int=x``), which fails in any Zope."""
    environ = {"REQUEST_METHOD": "GET", "SERVER_NAME": "x", "SERVER_PORT": "80", "QUERY_STRING": query_string(pairs)}
    try:
        HTTPRequest(BytesIO(), environ, None).processInputs()
    except Exception:  # noqa: BLE001  whatever it is, no code of Plone has run
        return True
    return False


def base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def wrong_parameters() -> Iterator[Pairs]:
    """Yield each parameter with each kind of value."""
    for name in PARAMETERS:
        for value in (*TEXTS, *ALL_INDEXES, *JSONS):
            yield [(name, value)]
            yield [(name, value), *WORDS]
            for converter in ("int", "float", "date", "json", "list", "record"):
                yield [(f"{name}:{converter}", value), *WORDS]
    for name in ("facet_conditions", "extra_conditions"):
        for text in ("[" * 40_000 + "]" * 40_000, '{"a":' * 40_000, LONG, f"[{LONG}]", "[NaN]", "{", *JSONS):
            yield [(name, base64(text))]
        yield from ([(name, b64encode(b"\xff\xfe").decode())], [(name, "ä")], [(name, "x")])
    yield [("facet_ranges", "[" * 40_000 + "]" * 40_000)]
    yield [("facets", ",".join(f"x{number}" for number in range(3000)))]


def wrong_orders(index: str) -> Iterator[Pairs]:
    """Yield parameters that sort, count or filter by *index*, in other spellings than ZCatalog's."""
    for pairs in ([], WORDS):
        yield from ([("sort_on", index), *pairs], [("sort-on", index), *pairs], [("sort", f"{index} desc"), *pairs])
        yield from ([("sort_on:list", index), ("sort_on:list", "getId"), *pairs], [("facets", index), *pairs])
    ends: list[Any] = [
        [None, None], [1, "x"], [2**70, -(2**70)], ["x", "a\0b"], ["\ud800", None], [[1], {}], [True, False],
        ["2026-01-01", None], ["not a date", None], [1e308, None], [float("inf"), float("nan")], ["1", "2", "3"], 1, None,
        [json.loads(DEEP[0]), None],
    ]  # fmt: skip
    for pair in ends:
        yield [("facet_ranges", json.dumps({index: {"a": pair}}))]
    yield from ([("facet_ranges", json.dumps(of))] for of in ({index: [1, 2]}, [index], {index: None}))
    chosen: list[Any] = [{"c": {text: True}} for text in (*TEXTS, "True")]
    for condition in (*chosen, {"m": True}, {"p": "a"}, {"c": [1]}, 1, None):
        yield [("facet_conditions", base64(json.dumps({index: condition})))]
    conditions: list[Any] = [[index, "date-range", {end: text}] for end in ("ge", "ls") for text in TEXTS]
    conditions += [[index, "string", {"in": value}] for value in (["a"], list(TEXTS), [1], "a", None)]
    conditions += [[index, "date-range", value] for value in ({"ge": "2026", "gr": "2025"}, {"le": 5}, [], {})]
    for condition in (*conditions, [index], index, [index, ["string"], {}], [[index], "string", {}], [index, "x", {}]):
        yield [("extra_conditions", base64(json.dumps([condition])))]


def wrong_values(index: str) -> Iterator[Pairs]:
    """Yield *index* with each kind of value, in each syntax that Zope and plone.restapi accept."""
    for value in TEXTS:
        yield [(index, value)]
        yield [(f"{index}:list", value), (f"{index}:list", "a")]
        yield [(f"{index}.query", value), (f"{index}.range", "min")]
        yield [(f"{index}.query:list", value), (f"{index}.query:list", "b"), (f"{index}.range", "min:max")]
        yield [(f"{index}.query:record", value), (f"{index}.range:record", "max")]
        for option in ("operator", "range", "depth", "level", "bogus", "not", "query"):
            yield [(f"{index}.query", "/plone"), (f"{index}.{option}", value)]
            yield [(f"{index}.{option}", value)]
        yield [(f"{index}.query", "/plone"), (f"{index}.navtree", "1"), (f"{index}.navtree_start", value)]
        yield [(f"{index}.query", value), (f"{index}.navtree", "1")]
        yield from ([(f"{index}.not:record:list", value)], [(f"{index}_usage", value), (index, "a")])
        yield from ([(f"{index}:{converter}", value)] for converter in CONVERTERS)
    for value in NUMBERS:
        for kind in ("int", "float", "date"):
            yield [(f"{index}:list:{kind}", value)]
            yield [(f"{index}.query:record:{kind}", value), (f"{index}.range:record", "min")]
            for option in ("depth", "level", "navtree_start", "not"):
                yield [(f"{index}.query:record", "/plone"), (f"{index}.{option}:record:{kind}", value)]
    for value in JSONS:
        yield from ([(f"{index}:json", value)], [(f"{index}.query:record:json", value)])
    yield [(f"{index}:list", f"v{number}") for number in range(3000)]
    yield [(f"{index}.query:records", "a"), (f"{index}.query:records", "b")]
    yield from ([(index, "a"), (f"{index}.query", "b")], [(f"{index}.a.b.c.d", "a")], [(f"{index}{'.a' * 3000}", "a")])


@cache
def every_request() -> list[Pairs]:
    per_index = [pairs for index in ALL_INDEXES for pairs in (*wrong_orders(index), *wrong_values(index))]
    return [*wrong_parameters(), *per_index]


# -- @querystring-search, whose query is JSON


OPERATIONS = (
    *(f"plone.app.querystring.operation.string.{name}" for name in ("contains", "is", "absolutePath", "relativePath")),
    *(f"plone.app.querystring.operation.date.{name}" for name in ("lessThan", "between", "largerThanRelativeDate")),
    *(f"plone.app.querystring.operation.{name}" for name in ("int.is", "selection.any", "selection.none")),
    *("plone.app.querystring.operation.boolean.isTrue", "no.such.operation"),
)


def wrong_bodies() -> Iterator[str]:
    """Yield request bodies, valid JSON and other text."""
    values = [
        *TEXTS,
        *(None, True, -1, 2**31, 2**63, 2**70, 1e308, [], {}, [[]], [None], ["a", 1], {"a": 1}, ["x"] * 3000),
    ]
    find = [{"i": "portal_type", "o": OPERATIONS[8], "v": ["Document"]}]
    for index in ALL_INDEXES:
        for operation in OPERATIONS:
            for value in values:
                yield json.dumps({"query": [{"i": index, "o": operation, "v": value}], "facets": ["Subject"]})
        for name in ("sort_on", "facets"):
            yield from (json.dumps({"query": find, name: value}) for value in (index, [index]))
        yield json.dumps({"query": find, "facet_ranges": {index: {"a": ["1", 2]}}})
    for name in (
        *("b_start", "b_size", "limit", "sort_on", "sort_order", "facets", "facet_ranges", "facet_limit", "query"),
    ):
        for value in (*values, [{"i": 1}], [1]):
            yield json.dumps({"query": find, "facets": ["Subject"], name: value})
    yield from ("", "1", "[]", "null", "{", "\0", LONG, "[" * 40_000 + "]" * 40_000, '{"query":' * 40_000)
    for name in ("query", "facet_ranges", "facet_limit", "b_start"):
        yield f'{{"query": {json.dumps(find)}, "{name}": {LONG}}}'
        yield f'{{"query": {json.dumps(find)}, "{name}": {DEEP[1]}}}'
