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

import pytest
import transaction


CONTENT = SHARED = populate
PAGE = "/plone/my_folder/page"


def differences(portal: Any) -> set[Difference]:
    return set(Verifier(portal.portal_catalog).differences())


def test_a_sound_catalog_has_no_differences(shared_filled: Any) -> None:
    verifier = Verifier(shared_filled.portal_catalog)
    assert list(verifier.differences()) == []
    assert verifier.checked == len(shared_filled.portal_catalog)


def test_a_tool_of_an_older_plone_is_named(shared_filled: Any) -> None:
    # An object of a class without Acquisition, as the tools removed in Plone 6.2, cannot be wrapped.
    shared_filled._tree["old_tool"] = PersistentMapping()
    shared_filled.getOrdering().notifyAdded("old_tool")
    with pytest.raises(AttributeError):
        shared_filled._getOb("old_tool")
    assert differences(shared_filled) == {Difference("/plone/old_tool", "dangling")}


def test_uncommitted_changes_are_verified(shared_filled: Any) -> None:
    shared_filled.my_folder.page.title = "Changed"
    assert {difference.path for difference in differences(shared_filled)} == {PAGE}
    shared_filled.my_folder.page.reindexObject()
    assert differences(shared_filled) == set()


#: Statement -> differences it makes.
DAMAGES = {
    "DELETE FROM {} WHERE get_id = 'page'": {Difference(PAGE, "missing")},
    "UPDATE {} SET subject = ARRAY['wrong'] WHERE get_id = 'page'": {Difference(PAGE, "different", ("subject",))},
    "UPDATE {} SET searchable_text = 'wrong' WHERE get_id = 'page'": {
        Difference(PAGE, "different", ("searchable_text",))
    },
    "UPDATE object_state SET idx = idx || '{{\"Title\": \"wrong\"}}' WHERE idx ->> 'getId' = 'page'": {
        Difference(PAGE, "different", ("Title",))
    },
    "UPDATE {} SET path = '/plone/nowhere' WHERE get_id = 'page'": {
        Difference(PAGE, "missing"),
        Difference("/plone/nowhere", "orphaned"),
    },
    "INSERT INTO {} (rid, path) VALUES (4711, '/plone/ghost')": {Difference("/plone/ghost", "orphaned")},
}


def test_differences_are_found_and_repaired(filled: Any, dsn: str) -> None:
    for statement, expected in DAMAGES.items():
        damage(dsn, statement)
        transaction.begin()
        assert differences(filled) == expected
        verifier = Verifier(filled.portal_catalog)
        for difference in expected:
            verifier.repair(difference)
        transaction.commit()
        assert differences(filled) == set(), statement
        assert [brain.Title for brain in filled.portal_catalog(getId="page")] == ["Page one"], statement


def test_id_in_the_order_of_a_folder_without_object_is_named(filled: Any) -> None:
    for folder in (filled, filled.my_folder):
        folder.getOrdering().notifyAdded("gone")
    filled.my_folder.page.title = "Changed"
    transaction.commit()
    verifier = Verifier(filled.portal_catalog)
    assert {(d.kind, d.path) for d in verifier.differences()} == {
        ("dangling", "/plone/gone"),
        ("dangling", "/plone/my_folder/gone"),
        ("different", PAGE),
    }
    assert verifier.checked == len(filled.portal_catalog)


def test_only_the_catalog_is_repaired_and_not_the_content(filled: Any, dsn: str) -> None:
    filled.my_folder.getOrdering().notifyAdded("gone")
    transaction.commit()
    damage(dsn, "INSERT INTO {} (rid, path) VALUES (4711, '/plone/my_folder/gone')")
    dangling, orphaned = (Difference("/plone/my_folder/gone", kind) for kind in ("dangling", "orphaned"))
    transaction.begin()
    found = differences(filled)
    assert found == {dangling, orphaned}
    Verifier(filled.portal_catalog).repair_all(found)
    assert differences(filled) == {dangling}
    assert "gone" in filled.my_folder.objectIds()


def test_remains_of_an_index_or_column_are_no_difference(filled: Any) -> None:
    tool = filled.portal_catalog
    for name in ("getId", "in_reply_to", "Subject", "path"):
        for names, remove in ((tool.indexes(), tool.delIndex), (tool.schema(), tool.delColumn)):
            if name in names:
                remove(name)
                assert differences(filled) == set(), name
                transaction.commit()
                assert differences(filled) == set(), name


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
    assert {difference.path for difference in differences(filled)} == {PAGE}


CONTENTS = ("a", "page", "page2", "news", "chinese", "expired", "future", "weekly", "once")
#: Loss -> paths reported as missing, and rows without an object.
LOST: dict[str, tuple[Callable[[Any], Any], set[str], set[str]]] = {
    "a page": (lambda site: site.my_folder.page, {PAGE}, set()),
    "a folder": (lambda site: site.my_folder, {"/plone/my_folder"}, {PAGE}),
    "the contents of a folder": (
        lambda site: site.my_folder._tree,
        {f"/plone/my_folder/{id}" for id in CONTENTS},
        {PAGE},
    ),
    "the annotations of a page": (lambda site: site.my_folder.page.__annotations__, {PAGE}, set()),
}


@pytest.mark.parametrize("what", LOST)
def test_missing_objects_are_named_and_the_rest_compared(dsn: str, what: str) -> None:
    find, gone, orphaned = LOST[what]
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        IAnnotations(portal.my_folder.page)["made"] = PersistentMapping()
        portal.my_folder.page.reindexObject()
        transaction.commit()
        # As a pack during saves may do.
        damage(dsn, f"DELETE FROM object_state WHERE zoid = {int.from_bytes(find(portal)._p_oid)}")
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        found = {(d.kind, d.path) for d in differences(portal)}
        assert {path for kind, path in found if kind in ("gone", "dangling")} == gone
        assert {path for kind, path in found if kind == "orphaned"} >= orphaned
        assert not [kind for kind, path in found if path not in gone and not path.startswith("/plone/my_folder")]
        # Differences are repaired where possible; a missing object is named as long as there is a reference to it.
        Verifier(portal.portal_catalog).repair_all(differences(portal))
        assert {difference.path for difference in differences(portal)} == gone
