"""What a catalog is set to is worked out once for each state of its settings, and in each ZODB connection for itself."""

from Acquisition import aq_base
from Acquisition import aq_parent
from plone.pgcatalog.core.configuration import Configuration
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any
from zope.component.hooks import setSite

import transaction


def test_a_saved_state_has_one_configuration(portal: Any) -> None:
    catalog = portal.portal_catalog
    before = Configuration.of(catalog)
    assert before.is_saved
    assert Configuration.of(catalog) is before
    transaction.begin()
    assert Configuration.of(catalog) is before
    create(portal, "Document", "page", title="Page")
    assert Configuration.of(catalog) is before
    transaction.commit()
    assert Configuration.of(catalog) is before


def test_changed_settings_have_another_one_until_they_are_taken_back(portal: Any) -> None:
    catalog = portal.portal_catalog
    before = Configuration.of(catalog)
    catalog.addColumn("aColumn")
    changed = Configuration.of(catalog)
    assert changed.columns == (*before.columns, "aColumn")
    assert not changed.is_saved
    assert Configuration.of(catalog) is changed
    assert before.columns == tuple(name for name in changed.columns if name != "aColumn")
    transaction.abort()
    assert Configuration.of(catalog).columns == before.columns
    assert Configuration.of(catalog).is_saved


def test_another_connection_s_change_is_heeded(db: Any, portal: Any) -> None:
    before = Configuration.of(portal.portal_catalog)
    manager = transaction.TransactionManager()
    with sites.application(db, manager) as other:
        other.plone.portal_catalog._indexes["created"].precision = 60
        manager.commit()
    setSite(portal)
    transaction.begin()
    after = Configuration.of(portal.portal_catalog)
    assert after is not before
    assert after.translators["created"].index.precision == 60


def test_connections_share_no_object(db: Any, portal: Any) -> None:
    mine = Configuration.of(portal.portal_catalog)
    with sites.application(db, transaction.TransactionManager()) as other:
        theirs = Configuration.of(other.plone.portal_catalog)
        assert theirs.state == mine.state
        for configuration, site in ((mine, portal), (theirs, other.plone)):
            tool = aq_base(site.portal_catalog)
            assert all(aq_parent(t.index) is tool for t in configuration.translators.values())
            assert vars(configuration.translators["Title"].index)["_v_lexicon"]._p_jar is tool._p_jar


def test_an_index_behind_a_savepoint_has_its_column_with_the_commit(portal: Any) -> None:
    catalog = portal.portal_catalog
    create(portal, "Document", "page", title="Page")
    transaction.commit()
    catalog.addIndex("an_index", FieldIndex("an_index", extra={"indexed_attrs": "Title"}))
    transaction.savepoint()
    transaction.commit()
    catalog.reindexIndex("an_index", None)
    transaction.commit()
    assert [b.getId for b in catalog.unrestrictedSearchResults(an_index="Page")] == ["page"]
