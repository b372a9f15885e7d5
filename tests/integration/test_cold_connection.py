"""A new connection, with nothing in memory, does not pay a round trip for each index before its first answer."""

from tests.integration.storage import forget_loaded
from tests.integration.storage import reads
from typing import Any


def test_index_objects_are_loaded_together(portal: Any) -> None:
    jar = portal._p_jar
    catalog = portal.portal_catalog
    query = {"portal_type": "Document", "sort_on": "getId"}
    expected = [brain.getPath() for brain in catalog.unrestrictedSearchResults(**query)]
    jar.cacheMinimize()
    forget_loaded(jar)
    indexes = portal.portal_catalog.aq_base._indexes.values()
    assert len([index for index in indexes if index._p_changed is None]) > 20
    before = reads(jar)
    assert [brain.getPath() for brain in portal.portal_catalog.unrestrictedSearchResults(**query)] == expected
    assert reads(jar).statements - before.statements == 1
