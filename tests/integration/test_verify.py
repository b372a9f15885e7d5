"""Verify finds every difference between catalog and content, and repairs it."""

from collections.abc import Callable
from persistent.mapping import PersistentMapping
from plone.pgcatalog.indexing.verify import Difference
from plone.pgcatalog.indexing.verify import Verifier
from tests.integration import site as sites
from tests.integration.content import populate
from tests.integration.relation import damage
from typing import Any
from zope.annotation.interfaces import IAnnotations

import psycopg
import pytest
import transaction


CONTENT = populate


@pytest.fixture
def filled(portal: Any) -> Any:
    return portal


def differences(portal: Any) -> set[Difference]:
    transaction.begin()
    return set(Verifier(portal.portal_catalog).differences())


def test_a_sound_catalog_has_no_differences(filled: Any) -> None:
    verifier = Verifier(filled.portal_catalog)
    assert list(verifier.differences()) == []
    assert verifier.checked == len(filled.portal_catalog)


def test_a_tool_of_an_older_plone_is_named(filled: Any) -> None:
    # An object of a class without Acquisition, as the tools removed in Plone 6.2, cannot be wrapped.
    filled._tree["old_tool"] = PersistentMapping()
    filled.getOrdering().notifyAdded("old_tool")
    with pytest.raises(AttributeError):
        filled._getOb("old_tool")
    assert list(Verifier(filled.portal_catalog).differences()) == [Difference("/plone/old_tool", "dangling")]


def test_uncommitted_changes_are_verified(filled: Any) -> None:
    filled.my_folder.page.title = "Changed"
    assert {d.path for d in Verifier(filled.portal_catalog).differences()} == {"/plone/my_folder/page"}
    filled.my_folder.page.reindexObject()
    assert list(Verifier(filled.portal_catalog).differences()) == []


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM {} WHERE get_id = 'page'", {Difference("/plone/my_folder/page", "missing")}),
        (
            "UPDATE {} SET subject = ARRAY['wrong'] WHERE get_id = 'page'",
            {Difference("/plone/my_folder/page", "different", ("subject",))},
        ),
        (
            "UPDATE {} SET searchable_text = 'wrong' WHERE get_id = 'page'",
            {Difference("/plone/my_folder/page", "different", ("searchable_text",))},
        ),
        (
            "UPDATE object_state SET idx = idx || '{{\"Title\": \"wrong\"}}' WHERE idx ->> 'getId' = 'page'",
            {Difference("/plone/my_folder/page", "different", ("Title",))},
        ),
        (
            "UPDATE {} SET path = '/plone/nowhere' WHERE get_id = 'page'",
            {Difference("/plone/my_folder/page", "missing"), Difference("/plone/nowhere", "orphaned")},
        ),
        ("INSERT INTO {} (rid, path) VALUES (4711, '/plone/ghost')", {Difference("/plone/ghost", "orphaned")}),
    ],
)
def test_differences_are_found_and_repaired(filled: Any, dsn: str, statement: str, expected: set[Difference]) -> None:
    damage(dsn, statement)
    found = differences(filled)
    assert found == expected
    verifier = Verifier(filled.portal_catalog)
    for difference in found:
        verifier.repair(difference)
    transaction.commit()
    assert differences(filled) == set()
    assert [b.Title for b in filled.portal_catalog(getId="page")] == ["Page one"]


@pytest.mark.parametrize("where", ["", "my_folder"])
def test_id_in_the_order_of_a_folder_without_object_is_named(filled: Any, where: str) -> None:
    folder = filled.unrestrictedTraverse(where) if where else filled
    folder.getOrdering().notifyAdded("gone")
    filled.my_folder.page.title = "Changed"
    transaction.commit()
    verifier = Verifier(filled.portal_catalog)
    assert {(d.kind, d.path) for d in verifier.differences()} == {
        ("dangling", "/".join([*folder.getPhysicalPath(), "gone"])),
        ("different", "/plone/my_folder/page"),
    }
    assert verifier.checked == len(filled.portal_catalog)


def test_only_the_catalog_is_repaired_and_not_the_content(filled: Any, dsn: str) -> None:
    filled.my_folder.getOrdering().notifyAdded("gone")
    transaction.commit()
    damage(dsn, "INSERT INTO {} (rid, path) VALUES (4711, '/plone/my_folder/gone')")
    dangling, orphaned = (Difference("/plone/my_folder/gone", kind) for kind in ("dangling", "orphaned"))
    found = differences(filled)
    assert found == {dangling, orphaned}
    Verifier(filled.portal_catalog).repair_all(found)
    assert differences(filled) == {dangling}
    assert "gone" in filled.my_folder.objectIds()


@pytest.mark.parametrize("name", ["getId", "in_reply_to", "Subject", "path"])
def test_remains_of_an_index_or_column_are_no_difference(filled: Any, name: str) -> None:
    tool = filled.portal_catalog
    for names, remove in ((tool.indexes(), tool.delIndex), (tool.schema(), tool.delColumn)):
        if name in names:
            remove(name)
            assert list(Verifier(tool).differences()) == []
            transaction.commit()
            assert differences(filled) == set()


def test_restored_column_is_compared_again(filled: Any) -> None:
    tool = filled.portal_catalog
    tool.delColumn("Title")
    transaction.commit()
    filled.my_folder.page.title = "Changed"
    filled.my_folder.page.reindexObject()
    transaction.commit()
    assert differences(filled) == set()
    tool.addColumn("Title")
    transaction.commit()
    assert {d.path for d in differences(filled)} == {"/plone/my_folder/page"}


def remove(dsn: str, obj: Any) -> None:
    """Delete *obj* from the database, as a pack during saves may do."""
    with psycopg.connect(dsn) as connection:
        connection.execute("DELETE FROM object_state WHERE zoid = %s", [int.from_bytes(obj._p_oid)])


CONTENTS = ("a", "page", "page2", "news", "chinese", "expired", "future", "weekly", "once")
#: Loss -> paths reported as missing, and rows without an object.
LOST: dict[str, tuple[Callable[[Any], Any], set[str], set[str]]] = {
    "a page": (lambda site: site.my_folder.page, {"/plone/my_folder/page"}, set()),
    "a folder": (lambda site: site.my_folder, {"/plone/my_folder"}, {"/plone/my_folder/page"}),
    "the contents of a folder": (
        lambda site: site.my_folder._tree,
        {f"/plone/my_folder/{id}" for id in CONTENTS},
        {"/plone/my_folder/page"},
    ),
    "the annotations of a page": (lambda site: site.my_folder.page.__annotations__, {"/plone/my_folder/page"}, set()),
}


@pytest.mark.parametrize("what", LOST)
def test_missing_objects_are_named_and_the_rest_compared(dsn: str, what: str) -> None:
    find, gone, orphaned = LOST[what]
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        IAnnotations(portal.my_folder.page)["made"] = PersistentMapping()
        portal.my_folder.page.reindexObject()
        transaction.commit()
        lost = find(portal)
        remove(dsn, lost)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        found = {(d.kind, d.path) for d in Verifier(portal.portal_catalog).differences()}
        assert {path for kind, path in found if kind in ("gone", "dangling")} == gone
        assert {path for kind, path in found if kind == "orphaned"} >= orphaned
        assert not [kind for kind, path in found if path not in gone and not path.startswith("/plone/my_folder")]
        # Differences are repaired where possible; a missing object is named as long as there is a reference to it.
        Verifier(portal.portal_catalog).repair_all(Verifier(portal.portal_catalog).differences())
        assert {d.path for d in Verifier(portal.portal_catalog).differences()} == gone
