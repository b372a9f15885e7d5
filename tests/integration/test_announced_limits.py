"""Announcements have limits, and only UIDs are announced."""

from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.core.references import announce_uids
from plone.pgcatalog.core.references import references
from plone.pgcatalog.restapi.references import BlockReferences
from plone.pgcatalog.results import announced
from tests.integration.content import create
from typing import Any


PAGES = 6


def fill(portal: Any) -> None:
    for number in range(PAGES):
        create(portal, "Document", f"page{number}", title=f"Page {number}")


SHARED = fill


def counts(portal: Any) -> tuple[int, int, int]:
    """Return the numbers of sources, values and groups of searches stored by the snapshot."""
    core = portal.portal_catalog._core
    return announced.Announced.of(core.session, core.zoid).counts


ODD_UIDS: list[Any] = [
    *(None, 3, b"bytes", "", "\0", "x" * 100_000, "\ud800", "ü" * 50, ("a", "b"), {"a": "b"}, ["a"], object()),
]


def test_odd_values_are_not_announced_and_harm_no_search(shared_filled: Any) -> None:
    uid = shared_filled.page0.UID()
    announce_uids(shared_filled, [*ODD_UIDS, uid])
    assert counts(shared_filled) == (0, 2, 0)
    search = shared_filled.portal_catalog.unrestrictedSearchResults
    assert [brain.getId for brain in search(UID=uid)] == ["page0"]
    assert len(search(UID="ü" * 50)) == 0


def test_keys_beyond_the_limit_are_not_read(shared_filled: Any) -> None:
    keys = (f"{number:032x}" for number in range(100_000))
    shared_filled.portal_catalog._core.announce("UID", keys, "test")
    assert next(keys) == f"{announced.MOST:032x}"
    assert counts(shared_filled) == (1, announced.MOST, 0)


def test_announcements_of_a_long_transaction_stay_few(shared_filled: Any) -> None:
    core = shared_filled.portal_catalog._core
    for page in range(announced.MOST_VALUES // 100 + 20):
        core.announce("UID", [f"{page:016x}{number:016x}" for number in range(200)], ("page", page))
        assert counts(shared_filled)[1] <= announced.MOST_VALUES
    for page in range(2 * announced.MOST_SOURCES):
        core.announce("UID", ["f" * 32], ("other", page))
    assert counts(shared_filled)[0] <= announced.MOST_SOURCES


def test_searches_with_changing_conditions_read_separately(shared_filled: Any) -> None:
    catalog = shared_filled.portal_catalog
    uids = [shared_filled[f"page{number}"].UID() for number in range(PAGES)]
    catalog._core.announce("UID", uids, "test")
    for depth in range(3, 3 + 2 * announced.MOST_GROUPS):
        for uid in uids:
            assert len(catalog.unrestrictedSearchResults(UID=uid, path={"query": "/plone", "depth": depth})) == 1
    assert counts(shared_filled)[2] == announced.MOST_GROUPS


# -- references


def links_in(value: Any) -> list[str]:
    """Return the UIDs in *value*, found by the simplest algorithm."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [uid for each in value for uid in links_in(each)]
    return [text.partition("#")[0] for text in value.split("resolveuid/")[1:]] if isinstance(value, str) else []


TEXTS = st.builds("../resolveuid/{}#".format, st.text("abc-_09", min_size=1, max_size=32))
JSON = st.recursive(
    st.none() | st.integers() | st.sampled_from(["", "text"]) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=30,
)


@given(JSON)
def test_references_of_any_json_are_its_links(value: Any) -> None:
    assert list(references(value)) == links_in(value)


def test_references_in_cyclic_or_deep_data_are_found() -> None:
    cyclic: dict[str, Any] = {"a": "resolveuid/one"}
    cyclic["b"] = cyclic["c"] = cyclic
    deep: Any = "resolveuid/one"
    for _ in range(20_000):
        deep = [{"a": deep}]
    for value in (cyclic, deep):
        assert {*references(value)} == {"one"}


def test_blocks_of_an_object_without_a_path_are_not_announced(shared_filled: Any) -> None:
    block = {"@type": "slate", "value": [{"url": "resolveuid/one"}]}
    assert BlockReferences(object(), shared_filled.REQUEST)(block) is block


def test_references_are_those_of_links_in_their_order() -> None:
    blocks = {
        "a": {"@type": "slate", "value": [{"children": [{"data": {"url": "../resolveuid/one#part"}}]}]},
        "b": {"href": [{"@id": "/plone/resolveUid/two/@@images/image"}], "n": 3, "none": None},
        "c": '<a href="resolveuid/three?x=1">resolveuid/</a> <img src="../../resolveuid/four/@@images/image/large">',
        "d": ({"deep": ["resolveuid/one"]},),
    }
    assert list(references(blocks)) == ["one", "two", "three", "four", "one"]
