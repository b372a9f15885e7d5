"""Searches for words between two vacuums: many saves have filled the pending list of the text index.

PostgreSQL then overestimates the cost of the index and prefers any other index that seems to answer the query.  An index
that finds every row makes it detoast and compare every text.
"""

from collections.abc import Iterator
from tests.integration import plans
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.relation import filled
from tests.integration.web import Site
from typing import Any

import psycopg
import pytest
import re
import transaction


#: Inserted directly: texts of 112 words, frequent and rare ones.
ROWS = """
INSERT INTO "{0}" (rid, path, path_value, parent_path, depth, portal_type, review_state, get_id, uid, created, modified,
        effective, allowed_roles, object_provides, sortable_title, searchable_text, searchable_text_words,
        effective_range_since, effective_range_until)
    SELECT i + 1000000, p, p, '/plone/f' || i % 200, 3, (ARRAY['Document', 'News Item', 'Event', 'File'])[1 + i % 4],
        (ARRAY['published', 'private'])[1 + i % 2], 'd' || i, md5(i::text), at, at, at,
        pg_temp.number_of('allowed_roles', ARRAY['Anonymous', 'Manager']), pg_temp.number_of('object_provides',
        (SELECT array_agg('some.long.name.of.an.interface.I' || n) FROM generate_series(1, 20) AS n)), 'title ' || i,
        (SELECT string_agg('w' || (power((i::bigint * n * 7919) % 4001 / 4001.0, 3) * 3000)::int || ':' || n, ' ')
            FROM generate_series(1, 112) AS n)::tsvector
            || CASE WHEN i % 3 = 0 THEN 'third:113' ELSE '' END::tsvector
            || CASE WHEN i % 20 = 0 THEN 'twentieth:114' ELSE '' END::tsvector,
        112, -1440, 2147483647
    FROM generate_series(1, 6000) i, LATERAL (
        SELECT '/plone/f' || i % 200 || '/d' || i, timestamptz '2020-01-01' + i * interval '1 hour') AS v(p, at)
"""
SAVED = 16
SAVES = 10
#: The parameter with which the plan reads the candidates has a name in PostgreSQL 15 and 16.
CANDIDATES = re.compile(r"Index Scan using \S+_pkey on .*\n +Index Cond: \(rid = ANY \((?:\(InitPlan|\$\d)")
#: Pages of the pending list with which PostgreSQL was observed to use other indexes.
PAGES = 40


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Any]:
    with sites.inside(shared_site.db) as portal:
        pages = [create(portal, "Document", f"page{number:02}", title=f"Page {number}") for number in range(SAVED)]
        transaction.commit()
        relation = filled(portal.portal_catalog, ROWS)
        for number in range(SAVES):
            for page in pages:
                page.description = " ".join(f"w{word * number % 2999}" for word in range(112))
                page.reindexObject()
            transaction.commit()
        transaction.begin()
        yield portal
        transaction.abort()
    with psycopg.connect(shared_site.dsn, autocommit=True) as connection:
        query = "SELECT gin_clean_pending_list(%s::regclass)"
        [[cleaned]] = connection.execute(query, [f"{relation}_searchable_text"]).fetchall()
        assert cleaned >= PAGES


def plans_of(site: Any, query: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (name, PostgreSQL's plan) of the statements for all rows of *query*: their number, and the best or all."""
    catalog = site.portal_catalog
    compiled, view, session = catalog.searchResults(**query).compiled, catalog._core.view(), catalog._core.session
    found = {"count": plans.count_statement(view, compiled)}
    if compiled.score is None:
        found["rids"] = plans.rids_statement(view, compiled)
    else:
        found["page"] = plans.page_statement(view, compiled, 0, 25)
    for name, statement in found.items():
        yield name, plans.plan_of(session, statement)
        if statement.plans_once:
            yield f"{name}, any values", plans.plan_for_any_values(session, statement)


ALL_ROWS = [
    *({"path": "/plone"}, {"path": {"query": "/plone"}}, {"path": {"query": ["/plone", "/plone/f1"]}}),
    *({"sort_on": "modified", "sort_order": "descending"}, {"sort_on": "sortable_title"}, {"sort_on": "path"}),
    *({"sort_on": ["sortable_title", "modified"]}, {"path": {"query": "/plone"}, "sort_on": "created"}),
    {"effective": {"query": "2021-01-01", "range": "whatever"}},
    {"portal_type": ["Document", "News Item", "Event", "File"], "path": "/plone"},
]


OTHERS = ("path_value", "modified", "created", "sortable_title", "portal_type", "allowed_roles", "pkey on")


@pytest.mark.parametrize("word", ["third", "twentieth", "w1", "w1*"])
@pytest.mark.parametrize("more", ALL_ROWS, ids=str)
def test_words_are_looked_for_by_the_text_index_alone(site: Any, word: str, more: dict[str, Any]) -> None:
    relation = site.portal_catalog._core.view().read_state().relation
    for operation, plan in plans_of(site, {"SearchableText": word, **more}):
        assert "_searchable_text" in plan, (operation, plan)
        # Candidates for a rank are fetched by their ids, which is no way to find words.
        others = CANDIDATES.sub("", plan)
        assert [index for index in OTHERS if f"{relation}_{index}" in others] == [], (operation, plan)


def test_selective_other_index_is_still_used(site: Any) -> None:
    assert "_path_value" in dict(plans_of(site, {"SearchableText": "third", "path": "/plone/f1"}))["count"]
