"""SQL indexes without rows that have no value: created by a rebuild for columns with few values."""

from plone.pgcatalog.results.cache import result_cache
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.integration.content import create
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.plans import count_statement
from tests.integration.plans import page_statement
from tests.integration.plans import plan_of
from tests.integration.rebuilding import differences
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from tests.integration.relation import filled as relation_filled
from typing import Any

import pytest
import transaction


pytestmark = pytest.mark.slow


def fill(portal: Any) -> None:
    """Few documents have a rare value, and a rare date."""
    catalog = portal.portal_catalog
    catalog.addIndex("rare", FieldIndex("rare"))
    catalog.addIndex("rare_date", DateIndex("rare_date"))
    for number in range(30):
        page = create(portal, "Document", f"page{number:02}")
        if number in (3, 17):
            page.rare, page.rare_date = f"value{number}", f"2026/01/{number:02} 00:00:00 UTC"
            page.reindexObject()
    transaction.commit()


CONTENT = fill


@pytest.fixture
def rebuilt(portal: Any, dsn: str) -> Any:
    rebuild(portal._p_jar.db())
    transaction.begin()
    return portal


def without_nulls(dsn: str) -> set[str]:
    """Return the names of the partial btrees, without that of the relation."""
    rows = sql(
        dsn,
        "SELECT substr(indexname, length(relation) + 2) FROM pg_indexes, pgcatalog_state"
        " WHERE tablename = relation AND indexdef LIKE '%btree%IS NOT NULL%'",
    )
    return {name for (name,) in rows} - {"start_first", "start_last", "end_first", "end_last"}


SPARSE_QUERIES: list[dict[str, Any]] = [
    {"rare": "value3"},
    {"rare": ["value3", "value17", "other"]},
    {"rare": {"query": "value2", "range": "min"}},
    {"rare": {"query": ["value0", "value2"], "range": "min:max"}},
    {"rare": {"not": "value17"}},
    {"rare_date": {"query": "2026/01/10", "range": "min"}},
    {"portal_type": "Document", "sort_on": "rare"},
    {"portal_type": "Document", "sort_on": "rare", "sort_order": "reverse"},
    {"portal_type": "Document", "sort_on": ["rare_date", "getId"], "sort_limit": 1},
    {"portal_type": "Document", "sort_on": "getId"},
]


def paths(catalog: Any) -> list[Any]:
    """Return the hits of each query; not the counts, as ZCatalog's include rows left out by a sort."""
    return [answer(catalog, query)[0] for query in SPARSE_QUERIES]


def test_column_with_few_values_gets_an_index_without_the_other_rows(rebuilt: Any, dsn: str) -> None:
    assert {"rare", "rare_date"} <= without_nulls(dsn)
    assert without_nulls(dsn).isdisjoint({"get_id", "modified", "path_value", "portal_type", "uid"})


def test_answers_are_zcatalogs(rebuilt: Any, dsn: str) -> None:
    catalog = rebuilt.portal_catalog
    for _ in range(2):
        oracle = make_oracle(rebuilt)
        result_cache().clear()
        assert paths(catalog) == paths(oracle)
        assert list(catalog.uniqueValuesFor("rare")) == sorted(oracle.uniqueValuesFor("rare"))
        # One value is added, and one removed.
        rebuilt.page04.rare, rebuilt.page03.rare = "value4", None
        rebuilt.page04.reindexObject()
        rebuilt.page03.reindexObject()
        assert paths(catalog) == paths(make_oracle(rebuilt))
        transaction.commit()
    assert differences(rebuilt) == []


def test_row_without_a_value_is_not_written_to_the_index(rebuilt: Any, dsn: str) -> None:
    def pages() -> list[Any]:
        return sql(
            dsn,
            "SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) FROM pg_index, pgcatalog_state"
            " WHERE indrelid = quote_ident(relation)::regclass"
            " AND indexrelid::regclass::text ~ '_(in_reply_to|sync_uid)$'",
        )

    relation_filled(rebuilt.portal_catalog, MANY_ROWS)
    # The meta page alone: 20,000 rows have left nothing.
    assert [size for _, size in pages()] == [8192, 8192]


MANY_ROWS = """
INSERT INTO "{0}" (rid, zoid, path, portal_type, get_id, rare, rare_date)
SELECT 1000000 + n, NULL, '/plone/n' || n, 'Document', 'n' || n, CASE WHEN n % 50 = 0 THEN 'value' || n END,
    CASE WHEN n % 50 = 0 THEN timestamptz '2026-01-01' + n * interval '1 minute' END
FROM generate_series(1, 20000) n
"""
PLANS: list[tuple[dict[str, Any], str]] = [
    ({"rare": "value3"}, "rare"),
    ({"rare": ["value3", "value100"]}, "rare"),
    ({"rare": {"query": ["value3", "value31"], "range": "min:max"}}, "rare"),
    ({"rare_date": {"query": "2026/01/14", "range": "min"}}, "rare_date"),
    ({"portal_type": "Document", "sort_on": "rare"}, "rare"),
    ({"portal_type": "Document", "sort_on": "rare", "sort_order": "reverse"}, "rare"),
    ({"portal_type": "Document", "sort_on": "rare_date", "sort_order": "reverse"}, "rare_date"),
]


@pytest.mark.parametrize("plan", ["force_generic_plan", "force_custom_plan"])
def test_searches_use_the_partial_index(rebuilt: Any, plan: str) -> None:
    catalog = rebuilt.portal_catalog
    tags = """UPDATE "{0}" SET subject = ARRAY['tag' || rid % 100] WHERE rid % 50 = 0"""
    relation = relation_filled(catalog, MANY_ROWS, tags)
    transaction.begin()
    view = catalog._core.view()
    # A GIN, which has no order to preserve, is partial from the first build on.
    for query in ({"Subject": "tag3"}, {"Subject": {"query": ["tag0", "tag50"], "operator": "and"}}):
        results = catalog.unrestrictedSearchResults(**query)
        assert f"{relation}_subject" in plan_of(view.session, count_statement(view, results.compiled))
    view.session.messages.run(f"SET LOCAL plan_cache_mode = {plan}")
    for query, index in PLANS:
        results = catalog.unrestrictedSearchResults(**query)
        statement = page_statement(view, results.compiled, 0, 20)
        assert f"{relation}_{index}" in plan_of(view.session, statement), query
