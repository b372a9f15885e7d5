"""Query objects: sets of ZCatalog's hits, combined by And, Or and Not, restricted to visible objects."""

from DateTime import DateTime
from datetime import datetime
from datetime import UTC
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import MAX_LEAVES
from plone.pgcatalog.query.expression import MAX_LEVELS
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import In
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.query.objects import Path
from plone.pgcatalog.query.objects import Range
from plone.pgcatalog.query.objects import Text
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import make_all
from tests.integration.people import PEOPLE
from typing import Any

import functools
import pytest
import transaction


SHARED = make_all


def paths(results: Any) -> set[str]:
    return {brain.getPath() for brain in results}


def everything(catalog: Any) -> set[str]:
    return set(catalog._catalog.uids)


#: Leaves, with the equivalent query dict.
LEAVES: list[tuple[Expression, dict[str, Any]]] = [
    (Eq("portal_type", "Document"), {"portal_type": "Document"}),
    (Eq("portal_type", "No Such Type"), {"portal_type": "No Such Type"}),
    (Eq("Subject", "Rot"), {"Subject": "Rot"}),
    (Eq("is_folderish", False), {"is_folderish": False}),
    (Eq("getId", "page"), {"getId": "page"}),
    (In("portal_type", ["Folder", "Event"]), {"portal_type": ["Folder", "Event"]}),
    (In("Subject", ("Rot", "grün")), {"Subject": ["Rot", "grün"]}),
    (In("review_state", []), {"review_state": []}),
    (Range("getId", min="f", max="p"), {"getId": {"query": ["f", "p"], "range": "min:max"}}),
    (Range("sortable_title", min="m"), {"sortable_title": {"query": "m", "range": "min"}}),
    (
        Range("effective", max=DateTime("2090/01/01 UTC")),
        {"effective": {"query": DateTime("2090/01/01 UTC"), "range": "max"}},
    ),
    (
        Range("start", min=datetime(2026, 4, 1, tzinfo=UTC)),
        {"start": {"query": datetime(2026, 4, 1, tzinfo=UTC), "range": "min"}},
    ),
    (Text("quick"), {"SearchableText": "quick"}),
    (Text("needle AND NOT draft"), {"SearchableText": "needle AND NOT draft"}),
    (Text("page", index="Title"), {"Title": "page"}),
    (Path("/plone/my_folder"), {"path": "/plone/my_folder"}),
    (Path("/plone/my_folder", depth=1), {"path": {"query": "/plone/my_folder", "depth": 1}}),
    (Path("/plone/my_folder/page", depth=0), {"path": {"query": "/plone/my_folder/page", "depth": 0}}),
    (Path(["/plone/closed", "/plone/public"]), {"path": ["/plone/closed", "/plone/public"]}),
]


#: Only searches without restriction may name an index of visibility.
UNRESTRICTED = (Eq("allowedRolesAndUsers", "Anonymous"), {"allowedRolesAndUsers": "Anonymous"})


@pytest.mark.parametrize(("leaf", "query"), [*LEAVES, UNRESTRICTED], ids=lambda v: str(v)[:60])
def test_leaf_has_the_hits_of_the_dict_dialect_and_not_all_others(
    compared: Any, leaf: Expression, query: dict[str, Any]
) -> None:
    """Rows without a value in the index are among the others."""
    ours, oracle, _ = compared
    found = paths(oracle.unrestrictedSearchResults(**query))
    others = everything(oracle) - found
    assert paths(ours.unrestrictedSearchResults(where=leaf)) == paths(ours.unrestrictedSearchResults(leaf)) == found
    assert paths(ours.unrestrictedSearchResults(where=Not(leaf))) == others
    assert paths(ours.unrestrictedSearchResults(where=~Not(~leaf))) == others


#: An expression, and a function that returns its set of paths.
Case = tuple[Expression, Any]


def joined(parts: list[Case], cls: Any, operation: Any, neutral: Any) -> Case:
    def meaning(oracle: Any) -> set[str]:
        return functools.reduce(operation, (part[1](oracle) for part in parts), neutral(oracle))

    return cls(*(part[0] for part in parts)), meaning


def cases() -> st.SearchStrategy[Case]:
    def leaf(at: int) -> Case:
        expression, query = LEAVES[at]
        return expression, lambda oracle: paths(oracle.unrestrictedSearchResults(**query))

    leaves = st.integers(0, len(LEAVES) - 1).map(leaf)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda parts: joined(parts, And, set.intersection, everything)),
            st.lists(inner, max_size=3).map(lambda parts: joined(parts, Or, set.union, lambda oracle: set())),
            inner.map(lambda part: (Not(part[0]), lambda oracle: everything(oracle) - part[1](oracle))),
        ),
        max_leaves=6,
    )


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_and_or_not_are_intersection_union_and_complement(compared: Any, case: Case) -> None:
    ours, oracle, _ = compared
    expression, meaning = case
    assert paths(ours.unrestrictedSearchResults(where=expression)) == meaning(oracle)


@pytest.mark.parametrize("user", PEOPLE)
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_expressions_find_only_visible_objects(compared: Any, user: Any, case: Case) -> None:
    ours, oracle, portal = compared
    expression, meaning = case
    with acting_as(portal, user):
        visible = paths(oracle.searchResults(sort_on="path"))
        found = meaning(oracle) & visible
        assert paths(ours.searchResults(where=expression)) == found
        assert paths(ours(expression)) == found
        assert paths(ours({"where": expression}, sort_on="path")) == found
        assert paths(ours.search({"where": expression})) == found
        assert paths(ours.search(expression)) == found


@pytest.mark.parametrize("user", PEOPLE)
@pytest.mark.parametrize(
    "trick",
    [
        Eq("allowedRolesAndUsers", "Manager"),
        Or(Eq("portal_type", "Document"), Not(Eq("allowedRolesAndUsers", "x"))),
        Or({"allowedRolesAndUsers": ["Manager"]}, And()),
        Not(Not({"effectiveRange": DateTime("1990/01/01")})),
        And(Or(Eq("effectiveRange", DateTime("1990/01/01")))),
    ],
    ids=str,
)
def test_indexes_of_visibility_cannot_be_queried(compared: Any, user: Any, trick: Expression) -> None:
    ours, _, portal = compared
    with acting_as(portal, user):
        for search in (
            lambda: ours(trick),
            lambda: ours(where=trick),
            lambda: ours.searchResults({"where": trick}),
            lambda: ours.searchResults({"where": And()}, where=trick),
            lambda: ours.search({"where": trick}),
            lambda: ours.iterate(where=trick),
            lambda: ours.facets(trick, ["getId"]),
        ):
            with pytest.raises(QueryError, match="are set by restricted searches"):
                search()


def test_a_path_in_an_expression_shows_nothing_inactive(compared: Any) -> None:
    """Unlike a path in the query dict, which shows a page that is not yet effective to its owner."""
    ours, _, portal = compared
    page = "/plone/closed/late-for-mara"
    with acting_as(portal, "mara"):
        assert paths(ours(path=page)) == {page}
        assert paths(ours(where=Path(page))) == set()


def test_expressions_combine_with_query_dicts(compared: Any) -> None:
    ours, oracle, _ = compared
    either = Or(Eq("Subject", "Rot"), Text("needle"))
    found = paths(oracle.unrestrictedSearchResults(Subject="Rot")) | paths(
        oracle.unrestrictedSearchResults(SearchableText="needle")
    )
    pages = paths(oracle.unrestrictedSearchResults(portal_type="Document"))
    assert paths(ours.unrestrictedSearchResults({"portal_type": "Document"}, where=either)) == found & pages
    assert paths(ours.unrestrictedSearchResults({"portal_type": "Document", "where": either})) == found & pages
    assert found & pages
    assert found - pages
    one = {"portal_type": {"not": "Document"}, "review_state": "published"}
    other = {"Subject": {"query": ["Rot", "x y"], "operator": "and"}}
    parts = [paths(oracle.unrestrictedSearchResults(**query)) for query in (one, other)]
    assert all(parts)
    assert paths(ours.unrestrictedSearchResults(where=Or(one, other))) == parts[0] | parts[1]
    assert paths(ours.unrestrictedSearchResults(where=Not(one))) == everything(oracle) - parts[0]


def test_expressions_are_sorted_counted_and_batched_as_queries(compared: Any) -> None:
    ours, oracle, _ = compared
    expression = Or(Eq("portal_type", "Folder"), Eq("portal_type", "Document"))
    query: dict[str, Any] = {"sort_on": "sortable_title", "sort_order": "descending", "b_start": 3, "b_size": 4}
    mine = ours.unrestrictedSearchResults(where=expression, **query)
    theirs = oracle.unrestrictedSearchResults(portal_type=["Folder", "Document"], **query)
    assert [b.getId for b in mine] == [b.getId for b in theirs]
    assert mine.actual_result_count == theirs.actual_result_count


def test_text_ranks_anywhere_in_an_expression(compared: Any) -> None:
    ours, _, _ = compared
    plain = [b.getPath() for b in ours.unrestrictedSearchResults(SearchableText="needle")]
    assert len(plain) > 3
    assert [b.getPath() for b in ours.unrestrictedSearchResults(where=And(Text("needle"), And()))] == plain
    mixed = ours.unrestrictedSearchResults(where=Or(Eq("portal_type", "Event"), Text("needle")))
    assert [b.getPath() for b in mixed][: len(plain)] == plain
    assert not [b for b in mixed[len(plain) :] if b.portal_type != "Event"]


def test_expressions_find_pending_rows(portal: Any, catalog: Any) -> None:
    either = Or(Eq("Subject", "fresh"), Eq("getId", "fresh"))
    assert not paths(catalog(where=either))
    create(portal, "Document", "one", subject=("fresh",))
    create(portal, "Document", "fresh")
    assert paths(catalog(where=either)) == {"/plone/one", "/plone/fresh"}
    transaction.commit()
    portal.manage_delObjects(["one"])
    assert paths(catalog(where=either)) == {"/plone/fresh"}
    assert "/plone/one" not in paths(catalog(where=Not(Eq("getId", "fresh"))))


def test_ranges_include_both_ends_and_mean_their_order(compared: Any) -> None:
    """Even where the dict dialect does not: 0 is an end, and the range from 5 to 1 is empty."""
    ours, _, _ = compared

    def titles(**ends: Any) -> set[str]:
        return {b.getId for b in ours.unrestrictedSearchResults(where=Range("getId", **ends))}

    assert {"page", "page2", "news"} <= titles(min="news", max="page2")
    assert titles(min="page2", max="news") == set()
    assert titles(max="") == set()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Eq(1, "x"), "name of an index"),
        (lambda: In("Subject", "Rot"), "sequence of values"),
        (lambda: In("Subject", 5), "sequence of values"),
        (lambda: Range("created"), "min or max"),
        (lambda: Text(None), "needs a string"),
        (lambda: Text(["a"]), "needs a string"),
        (lambda: Path(5), "needs a path"),
        (lambda: Path(["/a", 5]), "needs a path"),
        (lambda: Path("/a", depth=-1), "depth"),
        (lambda: Path("/a", depth="1"), "depth"),
        (lambda: And(Eq("Subject", "a"), "b"), "query objects"),
        (lambda: Or([Eq("Subject", "a")]), "query objects"),
        (lambda: Not(None), "query objects"),
        (lambda: Not({5: "x"}), "name of an index"),
        (lambda: Eq("Subject", "a") & "b", "query objects"),
    ],
)
def test_invalid_expression_is_refused_on_creation(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (Eq("no_such_index", 1), "no index 'no_such_index'"),
        (Or(Eq("Subject", "a"), Not({"nothing": 1})), "no index 'nothing'"),
        (Eq("getObjPositionInParent", 1), "cannot be searched"),
        (Range("SearchableText", min="a"), "no ranges"),
        (Range("path", min="/"), "no ranges"),
        (Text("x", index="portal_type"), "has no text"),
        (Path("/plone", index="portal_type"), "does not support"),
        (Eq("created", "not a date"), "created"),
        (Range("start", min="not a date"), "start"),
        (Not({"created": "not a date"}), "created"),
    ],
    ids=str,
)
def test_unanswerable_expression_raises_a_clear_error(compared: Any, expression: Any, message: str) -> None:
    ours, _, _ = compared
    with pytest.raises(QueryError, match=message):
        ours.unrestrictedSearchResults(where=expression)


def test_size_is_limited_before_the_statement_is_sent(compared: Any) -> None:
    ours, _, _ = compared
    expression: Expression = Eq("Subject", "a")
    for _ in range(MAX_LEVELS - 1):
        expression = Not(expression)
    ours.unrestrictedSearchResults(where=expression)
    with pytest.raises(QueryError, match="levels deep"):
        Not(expression)
    many = Or(*[Eq("Subject", f"tag{i}") for i in range(MAX_LEAVES)])
    assert len(ours.unrestrictedSearchResults(where=many)) == 0
    with pytest.raises(QueryError, match="conditions"):
        Or(many, Eq("Subject", "one more"))


def test_expressions_are_values() -> None:
    one = Or(Eq("a", 1), Not(In("b", ["x"])), Path("/a", depth=1))
    assert one == Or(Eq("a", 1), Not(In("b", ("x",))), Path(["/a"], depth=1))
    assert hash(one) == hash(Or(Eq("a", 1), Not(In("b", ("x",))), Path(["/a"], depth=1)))
    assert one != And(*one.parts)
    assert Eq("a", 1) & Eq("b", 2) == And(Eq("a", 1), Eq("b", 2))
    assert Eq("a", 1) | Eq("b", 2) == Or(Eq("a", 1), Eq("b", 2))
    assert ~Eq("a", 1) == Not(Eq("a", 1))
    assert one.names() == {"a", "b", "path"}
    assert repr(one).startswith("Or(Eq(index='a', value=1), Not(part=In(")
