"""A new connection, with nothing in memory, does not pay a round trip for each index before its first answer."""

from typing import Any


def test_index_objects_are_loaded_together(portal: Any) -> None:
    jar = portal._p_jar
    catalog = portal.portal_catalog
    query = {"portal_type": "Document", "sort_on": "getId"}
    expected = [brain.getPath() for brain in catalog.unrestrictedSearchResults(**query)]
    jar.cacheMinimize()
    storage = jar._normal_storage
    storage._load_cache.clear()
    storage._main._shared_cache.clear()
    indexes = portal.portal_catalog.aq_base._indexes.values()
    assert len([index for index in indexes if index._p_changed is None]) > 20
    before = storage._pg_query_count
    assert [brain.getPath() for brain in portal.portal_catalog.unrestrictedSearchResults(**query)] == expected
    assert storage._pg_query_count - before == 1
