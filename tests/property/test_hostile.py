"""Hostile content is saved as by the storage alone, and does no harm to other rows.

``HOSTILE_EXAMPLES=5000`` tries so many random examples instead of the fixed few.
"""

from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Iterator
from hypothesis import assume
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from persistent.mapping import PersistentMapping
from plone.pgcatalog.indexes.registry import settings_of
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.migration.tools import revive
from Products.CMFPlone.CatalogTool import CatalogTool
from tests.integration.odd import fill
from tests.integration.odd import found
from tests.integration.odd import indexed
from tests.integration.odd import INDEXES
from tests.property.hostile import Maker
from tests.property.hostile import makers
from tests.property.hostile import plain
from tests.property.hostile import texts
from typing import Any

import contextlib
import logging
import Missing
import os
import psycopg
import pytest
import transaction


pytestmark = pytest.mark.slow


EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", 0))
NAMES = (*INDEXES, "odd", "odd_start")
#: Indexes whose hits for a value are compared.
VALUE_INDEXES = ("odd-field", "odd-keyword", "odd-uuid", "odd-bool")
NEIGHBOURS = ("before", "zafter")


def examples(few: int) -> settings:
    """Return the settings for *few* fixed examples, or for as many random ones as the environment variable sets."""
    return settings(
        max_examples=EXAMPLES or few,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


#: A site whose catalog indexes ``odd`` in every way; the tests change the page between two others.
SHARED = fill


def make_small_oracle(portal: Any) -> Any:
    """Return an empty ZCatalog with the odd indexes and the odd column."""
    tool = CatalogTool()
    ours = portal.portal_catalog
    tool._setObject("plone_lexicon", ours.plone_lexicon.aq_base._getCopy(ours))
    oracle = tool.__of__(portal)
    for name in NAMES:
        oracle._catalog.addIndex(name, settings_of(aq_base(ours)._indexes[name]))
        revive(oracle, name)
    oracle._catalog.addColumn("odd")
    return oracle


def outcome(action: Any) -> type[BaseException] | None:
    """Run *action*; return the type of its exception after an abort, or None."""
    try:
        action()
    except Exception as error:  # noqa: BLE001  whatever it is, both must raise it
        transaction.abort()
        return type(error)
    return None


def neighbours(portal: Any) -> list[tuple[Any, ...]]:
    """Return the committed rows of the objects that are never changed."""
    relation = portal.portal_catalog._core.session.read_states()[portal.portal_catalog._core.zoid].relation
    with psycopg.connect(portal._p_jar.db().storage._dsn) as connection:
        return connection.execute(
            f'SELECT c.ctid, c.xmin, c::text, o.idx FROM "{relation}" c JOIN object_state o USING (zoid)'
            " WHERE get_id = ANY(%s) ORDER BY c.rid",
            (list(NEIGHBOURS),),
        ).fetchall()


@contextlib.contextmanager
def reports() -> Iterator[set[str]]:
    """Yield the set of the indexes and columns whose values are reported in the log during the block."""
    names: set[str] = set()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            parts = record.getMessage().split(": ")
            assert parts[0].startswith("/plone/")
            names.add(parts[1])

    handler, logger = Handler(), logging.getLogger("plone.pgcatalog.indexing.extract")
    logger.addHandler(handler)
    try:
        yield names
    finally:
        logger.removeHandler(handler)


def check_alive(portal: Any) -> None:
    """Check that all objects are found by ordinary values, and every index answers."""
    catalog = portal.portal_catalog
    assert found(catalog, portal_type="Document", sort_on="getId") == ["/plone/before", "/plone/page", "/plone/zafter"]
    assert found(catalog, Title="needle", getId="before") == ["/plone/before"]
    for name in NAMES:
        index = catalog._catalog.getIndex(name)
        if index.meta_type not in ("ZCTextIndex", "DateRangeIndex"):
            list(index.uniqueValues(withLengths=True))
        if index.meta_type != "ZCTextIndex":
            found(catalog, portal_type="Document", sort_on=name)
    catalog.getIndexDataForRID(catalog.getrid("/plone/page"))


def same(one: Any, other: Any) -> bool:
    """Return whether the values and their types are equal; NaN equals itself."""
    return type(one) is type(other) and (one == other or repr(one) == repr(other))


@examples(60)
@given(maker=makers)
def test_hostile_result_of_an_indexer_is_saved_as_by_zcatalog(shared_portal: Any, maker: Maker) -> None:
    catalog, page = shared_portal.portal_catalog, shared_portal.page
    transaction.begin()
    before = neighbours(shared_portal)
    oracle = make_small_oracle(shared_portal)
    with indexed("odd", lambda obj: maker()), indexed("odd_start", lambda obj: maker()), reports() as reported:
        theirs = outcome(lambda: oracle.catalog_object(page, "/plone/page"))
        ours = outcome(lambda: (catalog.catalog_object(page, "/plone/page"), transaction.commit()))
    # Our errors are errors of ZCatalog; if two indexes refuse a value, they may differ in which one raises first.
    assert ours is None or theirs is not None
    check_alive(shared_portal)
    assert neighbours(shared_portal) == before
    if ours is None and theirs is None:
        compare_answers(shared_portal, oracle, maker, reported)


def compare_answers(portal: Any, oracle: Any, maker: Maker, reported: set[str]) -> None:
    """Check that unreported values are found, and returned, as by ZCatalog."""
    catalog = portal.portal_catalog
    for name in set(VALUE_INDEXES) - reported:
        try:
            expected = found(oracle, **{name: maker()})
        except Exception:  # noqa: BLE001  ZCatalog fails; ours answers, or raises an error of its own
            continue
        assert found(catalog, **{name: maker()}) == expected, name
    [brain] = catalog.unrestrictedSearchResults(getId="page")
    [theirs] = oracle.searchAll()
    if "odd" not in reported:
        assert same(brain.odd, theirs.odd)
    else:
        assert brain.odd is Missing.Value or same(brain.odd, theirs.odd)


def is_saved_as_by_the_storage(portal: Any, value: Any, change: Callable[[Any], None]) -> bool:
    """Check that a commit of *change* of the page has the outcome of *value* in the storage alone; return if it succeeds."""
    transaction.begin()
    before = neighbours(portal)

    def store() -> None:
        portal._p_jar.root()["plain"] = PersistentMapping(value=value)
        transaction.commit()

    def save() -> None:
        change(portal.page)
        portal.page.reindexObject()
        transaction.commit()

    alone = outcome(store)
    assert outcome(save) is alone
    check_alive(portal)
    assert neighbours(portal) == before
    return alone is None


@examples(40)
@given(value=plain)
def test_hostile_attribute_is_saved_as_by_the_storage(shared_portal: Any, value: Any) -> None:
    is_saved_as_by_the_storage(shared_portal, value, lambda page: setattr(page, "odd", value))


#: Number of characters of a keyword that its key has in any case.
LISTED = 200


@examples(30)
@given(title=texts, subject=st.lists(texts, max_size=3).map(tuple), user=texts)
def test_hostile_queries_are_answered(shared_portal: Any, title: str, subject: tuple[str, ...], user: str) -> None:
    def change(page: Any) -> None:
        page.title, page.subject = title, subject
        page.__ac_local_roles__ = {user: ["Reader"], "admin": ["Owner"]}

    if is_saved_as_by_the_storage(shared_portal, (title, subject, {user: ["Reader"]}), change):
        catalog = shared_portal.portal_catalog
        [brain] = catalog.unrestrictedSearchResults(getId="page")
        assert (brain.Title, brain.Subject) == (title, subject)
        for keyword in subject:
            assert "/plone/page" in found(catalog, Subject=keyword)
            # A long key is listed by its beginning.
            assert keyword[:LISTED] in {key[:LISTED] for key in catalog.uniqueValuesFor("Subject")}
        assert found(catalog, getId="page", allowedRolesAndUsers=[f"user:{user}"]) == ["/plone/page"]


@examples(30)
@given(id=texts)
def test_any_path_is_catalogued(shared_portal: Any, id: str) -> None:
    assume(id.strip("/") and id not in NEIGHBOURS)
    catalog = shared_portal.portal_catalog
    path = f"/plone/{id}"
    transaction.begin()
    before, count = neighbours(shared_portal), len(catalog)
    known = clean_path(path) in catalog._catalog.uids
    catalog.catalog_object(shared_portal.page, path)
    for _ in range(2):
        assert len(catalog) == count + (not known)
        assert clean_path(path) in catalog._catalog.uids
        assert clean_path(path) in {b.getPath() for b in catalog.unrestrictedSearchResults(getId="page")}
        transaction.commit()
    catalog.uncatalog_object(path)
    transaction.commit()
    assert len(catalog) == count - known
    if known:
        catalog.catalog_object(shared_portal.page)
        transaction.commit()
    assert neighbours(shared_portal) == before
    check_alive(shared_portal)
