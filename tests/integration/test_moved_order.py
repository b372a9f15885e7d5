"""Results without sort_on, while objects are moved: a moved object comes after the others, as in ZCatalog."""

from plone import api
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any

import pytest
import transaction


def fill(portal: Any) -> None:
    for name in ("a", "b"):
        create(portal, "Folder", name)
        for number in range(3):
            create(portal[name], "Document", f"{name}{number}")


@pytest.fixture(params=["dsn", "stock_dsn"], ids=["ours", "ZCatalog"])
def portal(request: pytest.FixtureRequest) -> Any:
    """A site with content; ZCatalog numbers the objects of each ZODB connection in sequence, from a random start."""
    with sites.opened(request.getfixturevalue(request.param)) as db, sites.inside(db) as portal:
        fill(portal)
        transaction.commit()
        yield portal


def found(portal: Any, **options: Any) -> list[str]:
    brains = portal.portal_catalog.unrestrictedSearchResults(portal_type="Document", **options)
    return [brain.getId for brain in brains]


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (lambda portal: api.content.move(portal.a.a0, portal.b), ["a1", "a2", "b0", "b1", "b2", "a0"]),
        (lambda portal: api.content.rename(portal.a, "c"), ["b0", "b1", "b2", "a0", "a1", "a2"]),
    ],
    ids=["moved", "renamed"],
)
def test_moved_object_comes_after_the_others(portal: Any, move: Any, expected: list[str]) -> None:
    assert found(portal) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    move(portal)
    assert found(portal) == expected
    # The order is the same for long results, whose record ids are read first, and for single rows.
    results = portal.portal_catalog.unrestrictedSearchResults(portal_type="Document")
    assert [results[i].getId for i in range(len(results))] == expected
    assert sorted(found(portal, sort_on="getId")) == found(portal, sort_on="getId")


def test_object_created_in_the_same_transaction_is_no_exception(portal: Any) -> None:
    create(portal.a, "Document", "early")
    create(portal.b, "Document", "late")
    assert found(portal)[-2:] == ["early", "late"]
    before = transaction.savepoint()
    api.content.move(portal.a.early, portal.b)
    assert found(portal)[-2:] == ["late", "early"]
    before.rollback()
    assert found(portal)[-2:] == ["early", "late"]


def test_stream_and_abort_ignore_moves(db: Any) -> None:
    with sites.inside(db) as portal:
        fill(portal)
        transaction.commit()
        before = found(portal)
        api.content.move(portal.a.a0, portal.b)
        stream = portal.portal_catalog.iterate({"portal_type": "Document"}, batch=2)
        assert sorted(brain.getId for brain in stream) == sorted(before)
        transaction.abort()
        assert found(portal) == before
