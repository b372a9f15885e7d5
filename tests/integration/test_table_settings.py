"""How autovacuum treats a catalog's table, and how much its GIN indexes put off: of new ones, and by an upgrade of old ones."""

from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from typing import Any

import psycopg
import transaction


TABLE = "SELECT c.reloptions, t.reloptions FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.oid = %s::regclass"
INDEXES = (
    "SELECT c.relname, c.reloptions FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = %s::regclass"
)


def settings(dsn: str) -> Any:
    """Return the settings of the table, and of each of its indexes that has some."""
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    with psycopg.connect(dsn) as connection:
        [(table, toast)] = connection.execute(TABLE, [relation]).fetchall()
        indexes = connection.execute(INDEXES, [relation]).fetchall()
    names = {name.removeprefix(relation): sorted(options) for name, options in indexes if options}
    return sorted(table), sorted(toast), names


def test_an_upgrade_gives_an_older_table_the_settings_of_a_new_one(portal: Any, dsn: str) -> None:
    new = settings(dsn)
    assert "autovacuum_vacuum_scale_factor=0.02" in new[0]
    assert "autovacuum_vacuum_scale_factor=0.05" in new[1]
    sql(dsn, "ALTER TABLE {} RESET (autovacuum_vacuum_scale_factor, toast.autovacuum_vacuum_scale_factor)")
    assert settings(dsn) != new
    # The snapshot holds what a search locks: the table, and each of its indexes.
    assert portal.portal_catalog.unrestrictedSearchResults(SearchableText="x").actual_result_count == 0
    setup = portal.portal_setup
    setup.setLastVersionForProfile("plone.pgcatalog:default", "1007")
    setup.upgradeProfile("plone.pgcatalog:default")
    assert settings(dsn) == new
    transaction.commit()


def test_a_rebuild_gives_older_indexes_the_settings_of_new_ones(portal: Any, dsn: str) -> None:
    """PostgreSQL lets nobody read meanwhile if that is changed of an index that there is."""
    new = settings(dsn)
    assert {name for name, options in new[2].items() if "gin_pending_list_limit=1024" in options} >= {
        *("_searchable_text", "_title", "_description", "_subject")
    }
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    for name in new[2]:
        sql(dsn, f'ALTER INDEX "{relation}{name}" RESET (fastupdate, gin_pending_list_limit)')
    assert settings(dsn) != new
    rebuild(portal._p_jar.db())
    assert settings(dsn) == new
