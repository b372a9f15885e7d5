"""Facets count the hits of a search, value by value, and only those visible to the user."""

from collections import Counter
from collections.abc import Iterator
from DateTime import DateTime
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import In
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.query.objects import Path
from plone.pgcatalog.query.objects import Range
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.sql.expression import Statement
from tests.integration.people import acting_as
from tests.integration.people import make_all
from tests.integration.people import PAST
from tests.integration.people import PEOPLE
from tests.integration.relation import catalog_with_rows
from tests.integration.site import clone
from tests.integration.traffic import traced
from typing import Any

import pytest
import transaction


#: Users who see nothing hidden, some of it, and everything.
VISITORS = (None, "mara", "boss")
NAMES = ["portal_type", "Subject", "Creator", "review_state", "is_folderish", "object_provides", "created"]

QUERIES: list[dict[str, Any]] = [
    *({"path": "/plone"}, {"path": "/plone/my_folder", "portal_type": "Document"}, {"portal_type": []}, {}),
    *({"portal_type": ["Document", "Folder"], "Subject": "Rot"}, {"portal_type": "No Such Type"}),
    *({"SearchableText": "needle", "review_state": "published"}, {"portal_type": "Event", "sort_on": "start"}),
    *({"portal_type": {"not": "Document"}, "is_folderish": False}, {"path": "/plone", "sort_on": "end"}),
    {"path": "/plone", "sort_on": "created", "sort_order": "descending", "b_start": 3, "b_size": 2},
]


SHARED = make_all


def keys_of(oracle: Any, name: str, rid: int) -> list[Any]:
    """Return the keys of the index *name* that ZCatalog has for the row *rid*."""
    entry = oracle._catalog.getIndex(name).getEntryForObject(rid, None)
    if entry is None:
        return []
    return list(set(entry)) if isinstance(entry, list | tuple | set) else [entry]


def counted(oracle: Any, name: str, results: Any) -> dict[Any, int]:
    """Return the facet, counted row by row."""
    # Sorted by a recurring date, ZCatalog returns an event once for each of its occurrences.
    rids = {brain.getRID() for brain in results}
    return dict(Counter(key for rid in rids for key in keys_of(oracle, name, rid)))


def all_counted(oracle: Any, results: Any) -> dict[str, dict[Any, int]]:
    return {name: counted(oracle, name, results) for name in NAMES}


def without(query: dict[str, Any], *names: str) -> dict[str, Any]:
    return {k: v for k, v in query.items() if k not in names}


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_facets_count_the_hits_visible_to_the_user(compared: Any, query: dict[str, Any]) -> None:
    ours, oracle, portal = compared
    everything = without(query, "b_start", "b_size")
    found = oracle.unrestrictedSearchResults(**everything)
    assert ours.unrestrictedSearchResults(**query).facets(NAMES) == all_counted(oracle, found)
    for user in PEOPLE:
        with acting_as(portal, user):
            assert ours.facets(query, NAMES) == all_counted(oracle, oracle(**everything)), user
            assert ours.searchResults(**query).facets(NAMES) == ours.facets(query, NAMES), user


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_facets_own_criterion_can_be_left_out(compared: Any, query: dict[str, Any]) -> None:
    ours, oracle, portal = compared
    for user in VISITORS:
        with acting_as(portal, user):
            facets = ours.facets(query, NAMES, exclude_own=True)
            for name in NAMES:
                # In ZCatalog a query without any criterion finds nothing: here all rows are meant, expressed by path.
                others = without(query, name, "b_start", "b_size")
                others |= {} if not query or "path" in query else {"path": "/"}
                assert facets[name] == counted(oracle, name, oracle(**others)), (user, name)


def test_facets_include_the_criteria_of_query_objects(compared: Any) -> None:
    ours, oracle, _ = compared
    either = Or(Eq("Subject", "Rot"), Eq("portal_type", "Event"))
    found = [b for b in oracle(path="/plone") if "Rot" in b.Subject or b.portal_type == "Event"]
    assert ours.facets({"where": either}, NAMES) == all_counted(oracle, found)
    assert ours.facets(either, ["Subject"], exclude_own=True) == {"Subject": counted(oracle, "Subject", found)}
    assert ours.facets(Not(either), ["portal_type"])["portal_type"].get("Event") is None


def test_facet_has_the_most_frequent_values_first_and_is_cut(compared: Any) -> None:
    ours, oracle, _ = compared
    whole = counted(oracle, "object_provides", oracle.unrestrictedSearchResults(path="/"))
    results = ours.unrestrictedSearchResults(path="/")
    order = sorted(whole.items(), key=lambda item: (-item[1], item[0]))
    for limit in (1, 3, len(whole) - 1, len(whole), len(whole) + 1, None):
        facet = results.facets(["object_provides"], limit=limit)["object_provides"]
        assert list(facet.items()) == order[:limit]
        assert facet.truncated == (limit is not None and limit < len(whole))


DAY = DateTime("2026/06/01 00:00 UTC")
BUCKETS = {
    "start": {"before": (None, DAY), "that day": (DAY, DAY + 1), "later": (DAY + 1, None), "ever": (None, None)},
    "created": {"past": (None, DateTime() + 1), "future": (DateTime() + 1, None)},
    "sortable_title": {"a to m": ("a", "n"), "n to z": ("n", "z")},
}


def test_ranges_include_their_start_and_exclude_their_end_and_can_leave_out_their_own_criterion(compared: Any) -> None:
    ours, oracle, _ = compared
    facets = ours.unrestrictedSearchResults(path="/plone").facets(["portal_type"], ranges=BUCKETS)
    found = oracle.unrestrictedSearchResults(path="/plone")
    titles = [keys_of(oracle, "sortable_title", b.getRID())[0] for b in found]
    assert facets["sortable_title"] == {
        "a to m": sum("a" <= t < "n" for t in titles),
        "n to z": sum("n" <= t < "z" for t in titles),
    }
    assert facets["created"] == {"past": len(found), "future": 0}
    assert facets["portal_type"] == counted(oracle, "portal_type", found)
    assert facets["start"] == {"before": 1, "that day": 1, "later": 0, "ever": len(found)}
    # Without their own criterion.
    query = {"portal_type": "Event", "start": {"query": DAY, "range": "min"}}
    ranges = {"start": BUCKETS["start"]}
    results = ours.unrestrictedSearchResults(**query)
    assert results.facets([], ranges=ranges)["start"] == {"before": 0, "that day": 1, "later": 0, "ever": 1}
    facets = results.facets(["portal_type"], ranges=ranges, exclude_own=True)
    assert facets["start"] == {"before": 1, "that day": 1, "later": 0, "ever": 2}
    assert facets["portal_type"]["Event"] == 1


@pytest.mark.parametrize("user", VISITORS)
def test_ranges_of_dates_are_counted_like_searched(compared: Any, user: Any) -> None:
    """All ranges of a date index are one expression, even if they overlap: each counts the hits of a search for it."""
    ours, _, portal = compared
    ends = [None, *(DateTime(f"{year}/01/01 Europe/Vienna") for year in (1969, 2001, 2026, 2027, 2099)), DAY, DAY + 1]
    for name in ("effective", "created", "expires", "start"):
        ranges = {f"{i} {j}": (low, high) for i, low in enumerate(ends) for j, high in enumerate(ends)}
        with acting_as(portal, user):
            facet = ours.facets({"path": "/plone"}, ranges={name: ranges})[name]
            for label, (low, high) in ranges.items():
                parts = [] if low is None else [Range(name, min=low)]
                parts += [] if high is None else [Range(name, max=high), Not(Range(name, min=high))]
                assert facet[label] == len(ours(path="/plone", where=And(*parts))), (name, low, high)


@pytest.mark.parametrize("place", ["/plone", "/plone/", "/plone/public", "/plone/publi", "/plone/nowhere", "/"])
def test_children_of_a_place_count_everything_below_it(compared: Any, place: str) -> None:
    ours, oracle, portal = compared
    start = place.rstrip("/") + "/"
    for user in PEOPLE:
        with acting_as(portal, user):
            paths = [brain.getPath() for brain in oracle(path="/plone")]
            children = Counter(start + path[len(start) :].split("/")[0] for path in paths if path.startswith(start))
            of_site, of_place, of_both = (
                ours.facets({"path": "/plone"}, children={"path": places})["path"]
                for places in ("/plone", place, [place, "/plone"])
            )
            assert of_place == dict(children), user
            assert of_both == of_site | children, user
            # Each is the result of a search there.
            assert {path: len(ours(path=path)) for path in children} == children, user


CHOSEN = {
    "Subject": In("Subject", ["Rot", "no such tag"]),
    "portal_type": In("portal_type", ["Document", "Event"]),
    "path": Path(["/plone/my_folder"]),
    "created": Range("created", min=PAST),
    "review_state": Eq("review_state", "published"),
}


@pytest.mark.parametrize("user", VISITORS)
@pytest.mark.parametrize("names", [["Subject"], ["portal_type", "path"], list(CHOSEN)])
def test_facet_applies_the_choices_in_other_facets(compared: Any, user: Any, names: list[str]) -> None:
    """A choice in review_state, an index that is no facet here, applies to all of them."""
    ours, _, portal = compared
    chosen = {name: CHOSEN[name] for name in names}
    ranges = {"created": {"past": (PAST, None)}}
    with acting_as(portal, user):
        results = ours(path="/plone", where=Not(Eq("getId", "news")))
        found = results.facets(["Subject", "portal_type"], ranges=ranges, children={"path": "/plone"}, chosen=chosen)
        assert found.total == len(ours(path="/plone", where=And(Not(Eq("getId", "news")), *chosen.values())))
        for facet in ("Subject", "portal_type", "path", "created"):
            others = And(Not(Eq("getId", "news")), *(e for name, e in chosen.items() if name != facet))
            rest = ours(path="/plone", where=others)
            if facet == "created":
                assert found[facet] == {"past": len(rest)}
            elif facet == "path":
                assert found[facet] == rest.facets(children={"path": "/plone"})["path"]
            else:
                assert found[facet] == rest.facets([facet])[facet]


@pytest.mark.parametrize("user", VISITORS)
def test_facet_counts_has_every_index_by_text(compared: Any, user: Any) -> None:
    ours, oracle, portal = compared
    with acting_as(portal, user):
        results = ours(path="/plone", b_size=2)
        fields = results.facet_counts.get("facet_fields")
        found = oracle(path="/plone")
        assert fields
        for name in NAMES:
            whole = counted(oracle, name, found)
            texts = {str(bool(k)) if name == "is_folderish" else str(k): n for k, n in whole.items()}
            assert dict(fields.get(name, {}).items()) == texts
        assert fields.get("no such index", {}) == {}
        assert fields.get("SearchableText", {}) == {}
        assert not {"allowedRolesAndUsers", "effectiveRange"} & set(fields)
        assert {"portal_type", "Subject", "Creator"} <= set(fields)


@pytest.mark.parametrize("name", ["allowedRolesAndUsers", "effectiveRange"])
@pytest.mark.parametrize("options", [{}, {"exclude_own": True}])
def test_indexes_of_visibility_are_no_facets(compared: Any, name: str, options: dict[str, Any]) -> None:
    """Nor can the restriction be left out as a facet's own criterion."""
    ours, _, portal = compared
    with acting_as(portal, None):
        for query in ({"path": "/plone"}, {"allowedRolesAndUsers": "Manager"}):
            with pytest.raises(QueryError, match="not a facet"):
                ours.facets(query, [name], **options)
            for more in (
                {"ranges": {name: {"all": ("a", None)}}},
                {"children": {name: "/"}},
                {"chosen": {name: Eq("portal_type", "Document")}, "children": {name: "/"}},
                {"chosen": {"portal_type": Eq(name, "Manager")}},
                {"chosen": {"portal_type": Or(Path("/plone"), Not(Eq(name, "Anonymous")))}},
            ):
                with pytest.raises(QueryError, match="not a facet"):
                    ours.facets(query, ["portal_type"], **more, **options)


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["nothing"], {}, "no index 'nothing'"),
        (["SearchableText"], {}, "has no facets"),
        (["getObjPositionInParent"], {}, "has no facets"),
        ([], {"ranges": {"nothing": {"x": (1, 2)}}}, "no index 'nothing'"),
        ([], {"ranges": {"path": {"x": ("/a", "/b")}}}, "no ranges"),
        (["created"], {"ranges": {"created": {}}}, "with values and with ranges"),
        ([], {"children": {"Subject": "/"}}, "has no children"),
        ([], {"ranges": {"path": {}}, "children": {"path": "/"}}, "with children and with other buckets"),
        ([], {"chosen": {"x": Eq("nothing", "a")}, "children": {"path": "/"}}, "no index 'nothing'"),
        ([f"index{i}" for i in range(40)], {}, "no index"),
    ],
)
def test_wrong_facets_are_errors(compared: Any, names: Any, options: Any, message: Any) -> None:
    ours, _, _ = compared
    with pytest.raises(QueryError, match=message):
        ours.facets({"path": "/"}, names, **options)


def test_names_of_facets_are_any_sequence_but_a_string(compared: Any) -> None:
    ours, _, _ = compared
    assert ours.facets({"path": "/"}, ("path", "portal_type") * 40).keys() == {"path", "portal_type"}
    with pytest.raises(TypeError):
        ours.facets({"path": "/"}, "portal_type")


def test_index_added_in_the_same_transaction_is_a_facet(shared_filled: Any) -> None:
    """``test_stored_counts.py`` has the other changes of a transaction."""
    catalog = shared_filled.portal_catalog
    catalog.addIndex("language", "FieldIndex")
    assert catalog.facets({"path": "/plone"}, ["language"]) == {"language": {}}
    catalog.manage_reindexIndex(ids=["language"])
    assert catalog.facets({"path": "/plone"}, ["language"])["language"]["en"] > 0
    transaction.abort()


def test_many_facets_are_one_statement(compared: Any) -> None:
    ours, _, portal = compared
    transaction.begin()
    result_cache().clear()
    query = {"path": "/plone", "portal_type": "Document", "Subject": "Rot"}
    len(ours.unrestrictedSearchResults(portal_type="Folder"))
    results = ours.unrestrictedSearchResults(**query)
    with traced(portal) as traffic:
        results.facets(NAMES, ranges={"effective": {"past": (None, DateTime())}}, exclude_own=True)
    assert traffic[0].round_trips == 1
    with traced(portal) as traffic:
        ours.facets(query, NAMES[:3], timeout=30)
    assert len(traffic[0].matching("GROUPING SETS")) == 1
    assert traffic[0].round_trips == 1  # the limit is set and reset in the same message
    with traced(portal) as traffic:
        again = ours.facets(query, NAMES[:3])
        again["Subject"].clear()
        assert ours.facets(query, NAMES[:3])["Subject"]
    assert traffic[0].messages == []  # counted already in this state of the catalog
    with traced(portal) as traffic:
        ours.unrestrictedSearchResults(portal_type=[]).facets(NAMES)
        ours.unrestrictedSearchResults(**query).facets([])
    assert traffic[0].messages == []


def test_time_limit_ends_a_count_and_the_transaction_stays_usable(compared: Any) -> None:
    ours, oracle, _ = compared
    transaction.begin()
    slow = "SELECT count(*), pg_sleep(5) FROM pg_class"
    view = ours._core.view()
    with pytest.raises(SearchTimeout, match=r"0\.05 s"):
        view.fetch(lambda _: Statement(slow), seconds=0.05).value()
    found = oracle(path="/plone")
    assert ours.facets({"path": "/plone"}, NAMES, timeout=60)["Subject"] == counted(oracle, "Subject", found)
    assert view.session.execute("SELECT current_setting('statement_timeout')") == [("0",)]
    for seconds in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="more than 0"):
            ours.facets({"path": "/plone"}, NAMES[:2], timeout=seconds)


@pytest.fixture(scope="module")
def big(site_template: str, postgres: Any) -> Iterator[Any]:
    with catalog_with_rows(clone(postgres, site_template), 20_000) as catalog:
        yield catalog


def plan_of(catalog: Any, query: dict[str, Any], names: list[str], **options: Any) -> str:
    """Return the plan of the statement that counts *names*, as JSON text."""
    from plone.pgcatalog.discovery.facet_groups import FacetQuery
    from plone.pgcatalog.discovery.facets import FacetStatement

    results = catalog.unrestrictedSearchResults(**query)
    asked = FacetQuery(results.criteria, results.sort, names, {}, options.get("exclude_own", False), 100)
    view = catalog._core.view()
    made = FacetStatement(catalog._core.context, asked, catalog._core.configuration.compiled_queries)

    def statement(stored: Stored) -> Statement:
        bound = made.changed(lambda condition: bind.condition(condition, stored))
        return bound.statement(*stored.source, bind.lists_sql(stored))

    text, params = view.statement(statement, *made.conditions)
    rows = view.session.execute(f"EXPLAIN {text}", params)
    return "\n".join(line for (line,) in rows)


@pytest.mark.parametrize("exclude_own", [False, True])
def test_twenty_thousand_rows_are_read_once_and_never_sorted(big: Any, exclude_own: bool) -> None:
    relation = big._core.view().read_state().relation
    names = NAMES[:4]
    query = {"allowedRolesAndUsers": ["Anonymous"], "portal_type": ["Document", "Event"]}
    plan = plan_of(big, query, names, exclude_own=exclude_own)
    reading = plan.partition(f"Scan on {relation} ")[0].splitlines()
    assert plan.count(f"Scan on {relation} ") == 1, plan
    # From the scan up to the groups, which are few.
    grouping = "\n".join(reading[next(i for i, line in enumerate(reading) if "CTE counted" in line) :])
    assert "MixedAggregate" in grouping, plan
    assert "Sort " not in grouping, plan


def test_few_hits_of_many_rows_are_found_by_an_index_and_all_are_counted(big: Any) -> None:
    for query in ({"Subject": "tag42"}, {"SearchableText": "word17"}):
        plan = plan_of(big, query, ["portal_type", "Creator"])
        assert "Seq Scan" not in plan, plan
    facets = big.unrestrictedSearchResults(is_folderish=False).facets(["portal_type", "Subject", "getId"], limit=50)
    assert facets["portal_type"] == dict.fromkeys(("Document", "News Item", "Event", "File"), 5000)
    assert len(facets["Subject"]) == 50
    assert facets["Subject"].truncated
    assert sum(facets["getId"].values()) == 50
