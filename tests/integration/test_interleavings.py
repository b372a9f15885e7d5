"""A transaction sees the catalog of its snapshot from its first to its last query, whatever others commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.errors import CatalogLocked
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.editors import abort
from tests.integration.editors import begin
from tests.integration.editors import distant_editor
from tests.integration.editors import Editor
from tests.integration.editors import editor
from tests.integration.fixtures import SiteWith
from tests.integration.pages import make_many_pages
from tests.integration.pages import MANY
from typing import Any

import pytest


pytestmark = pytest.mark.slow


def fill(portal: Any) -> None:
    portal.portal_workflow.setChainForPortalTypes(("Document",), ("simple_publication_workflow",))
    folder = create(portal, "Folder", "folder", title="Folder", subject=("one",))
    for id in ("a", "b"):
        create(folder, "Document", id, title=f"Needle {id}", subject=("one", id))
    create(folder, "Folder", "inner", title="Inner")
    create(folder.inner, "Document", "deep", title="Needle deep")


@pytest.fixture
def dsn(site_with: SiteWith) -> str:
    return site_with(fill)


@contextmanager
def open_editor(kind: str, db: Any, dsn: str) -> Iterator[Editor]:
    with editor(db) if kind == "thread" else distant_editor(dsn) as opened:
        yield opened


QUERIES: list[dict[str, Any]] = [
    {"path": "/plone"},
    {"path": {"query": "/plone/folder", "depth": 1}, "sort_on": "getObjPositionInParent"},
    {"SearchableText": "needle"},
    {"portal_type": "Document", "sort_on": "sortable_title", "sort_order": "reverse"},
    {"portal_type": "Document", "sort_on": "modified", "sort_limit": 2},
    {"Subject": "one", "sort_on": "getId"},
    {"review_state": "published"},
    {"allowedRolesAndUsers": ["Anonymous", "user:mara"]},
    {"portal_type": {"not": "Folder"}, "sort_on": "path"},
    {"layout": "document_view", "sort_on": "getId"},
]


def observe(site: Any) -> dict[str, Any]:
    """Everything that a transaction can learn from the catalog."""
    catalog = site.portal_catalog
    results = [catalog.unrestrictedSearchResults(**query) for query in QUERIES]
    rids = sorted(catalog._catalog.paths.keys())
    return {
        "counts": [(len(r), r.actual_result_count) for r in results],
        "found": [[(b.getPath(), b.getRID(), b.Title, b.review_state) for b in r] for r in results],
        "restricted": sorted(b.getPath() for b in catalog(SearchableText="needle")),
        "metadata": {rid: catalog.getMetadataForRID(rid) for rid in rids},
        "index data": {rid: catalog.getIndexDataForRID(rid) for rid in rids},
        "unique values": {name: catalog.uniqueValuesFor(name) for name in ("Subject", "portal_type", "getId")},
        "paths": [catalog.getpath(rid) for rid in rids],
        "counter": catalog.getCounter(),
        "length": len(catalog),
    }


def add(site: Any) -> None:
    create(site.folder, "Document", "new", title="Needle new", subject=("new",))


def edit(site: Any) -> None:
    site.folder.a.title = "Haystack"
    site.folder.a.setSubject(("other",))
    site.folder.a.reindexObject()


def delete(site: Any) -> None:
    site.folder.manage_delObjects(["a"])


def delete_tree(site: Any) -> None:
    site.manage_delObjects(["folder"])


def publish(site: Any) -> None:
    site.portal_workflow.doActionFor(site.folder.a, "publish")


def share(site: Any) -> None:
    site.folder.manage_setLocalRoles("mara", ["Reader"])
    site.folder.reindexObjectSecurity()


def rename_tree(site: Any) -> None:
    site.manage_renameObject("folder", "renamed")


def clear(site: Any) -> None:
    site.portal_catalog.manage_catalogClear()


def rebuild(site: Any) -> None:
    site.folder.a.title = "Haystack"
    site.portal_catalog.clearFindAndRebuild()


def add_index(site: Any) -> None:
    site.portal_catalog.addIndex("layout", "FieldIndex", {"indexed_attrs": "getLayout"})
    site.portal_catalog.manage_reindexIndex(["layout"])


def clear_index(site: Any) -> None:
    site.portal_catalog.manage_clearIndex(["Subject"])


CHANGES = [add, edit, delete, delete_tree, publish, share, rename_tree, clear, rebuild, clear_index]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *(("thread", change) for change in CHANGES),
        *(("process", change) for change in (add, share, rename_tree, rebuild)),
    ],
)
def test_a_snapshot_stays_and_the_next_one_is_new(db: Any, dsn: str, kind: str, change: Any) -> None:
    """*early* looks before and after the other's commit, *late* only after it: both have the older snapshot."""
    with open_editor(kind, db, dsn) as writer, editor(db) as early, editor(db) as late:
        late.begin()
        before = early.do(observe)
        writer.do(change)
        assert early.do(observe) == before  # not committed
        writer.commit()
        assert late.do(observe) == before
        assert early.do(observe) == before
        late.begin()
        after = late.do(observe)
        assert after != before
        assert after["counter"] != before["counter"]
        early.begin()
        writer.do(begin)
        assert early.do(observe) == writer.do(observe) == after


def test_a_new_index_waits_for_those_who_read_the_table(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its column is an ALTER TABLE: for a reader's transaction, then the commit fails and may be tried again."""
    monkeypatch.setattr(schema, "LOCK_TIMEOUT", "50ms")
    with editor(db) as writer, editor(db) as early, editor(db) as late:
        late.begin()
        before = early.do(observe)
        writer.do(add_index)
        with pytest.raises(CatalogLocked):
            writer.commit()
        writer.do(abort)
        assert early.do(observe) == before
        early.begin()
        writer.do(add_index)
        writer.commit()
        assert late.do(observe) == before
        late.begin()
        assert late.do(observe)["found"] != before["found"]


@pytest.mark.parametrize("change", [edit, rename_tree, clear, add_index])
def test_an_aborted_change_was_never_there(db: Any, change: Any) -> None:
    with editor(db) as writer, editor(db) as reader:
        before = reader.do(observe)
        writer.do(change)
        writer.do(observe)
        writer.do(abort)
        assert writer.do(observe) == before
        reader.begin()
        assert reader.do(observe) == before
        writer.do(edit)
        writer.commit()
        reader.begin()
        assert reader.do(observe)["counter"] > before["counter"]


@pytest.mark.parametrize("change", [rename_tree, delete_tree, edit])
def test_pending_changes_are_shown_on_the_own_snapshot(db: Any, change: Any) -> None:
    """What is pending does not let through what others have committed meanwhile."""
    with editor(db) as one, editor(db) as other:
        one.do(lambda site: create(site, "Document", "mine", title="Needle mine"))
        before = one.do(observe)
        other.do(change)
        other.commit()
        assert one.do(observe) == before


def replace_all(site: Any) -> None:
    site.manage_delObjects([f"page{number:03}" for number in range(0, MANY, 2)])
    for number in range(1, MANY, 2):
        page = site[f"page{number:03}"]
        page.title = f"New {number:03}"
        page.reindexObject()


@pytest.mark.parametrize("how", ["index", "slice", "iteration", "last", "count"])
def test_later_pages_come_from_the_snapshot_of_the_search(site_with: SiteWith, how: str) -> None:
    expected = [f"Page {number:03}" for number in range(MANY)]

    def rest(site: Any) -> Any:
        results = kept[0]
        if how == "index":
            return [results[i].Title for i in range(MANY)]
        if how == "slice":
            return [b.Title for i in range(0, MANY, 20) for b in results[i : i + 20]]
        if how == "last":
            return [*expected[:-1], results[-1].Title]
        if how == "count":
            return expected[: len(results)] if results.actual_result_count == MANY else []
        return [b.Title for b in results]

    kept: list[Any] = []
    with (
        sites.opened(site_with(make_many_pages)) as db,
        editor(db) as reader,
        editor(db) as writer,
    ):
        reader.do(
            lambda site: kept.append(
                site.portal_catalog.unrestrictedSearchResults(portal_type="Document", sort_on="getId")
            )
        )
        assert reader.do(lambda site: kept[0][3].Title) == "Page 003"
        writer.do(replace_all)
        writer.commit()
        assert reader.do(rest) == expected
        kept.clear()


def test_commits_become_visible_in_their_order(db: Any) -> None:
    """Readers that start after the n-th commit see exactly n changes, until they end."""
    with editor(db) as writer, editor(db) as one, editor(db) as two, editor(db) as three:
        snapshots = []
        for number, reader in enumerate((one, two, three)):
            reader.begin()
            snapshots.append((reader, number))
            writer.do(lambda site, n=number: create(site, "Document", f"step{n}", subject=("step",)))
            writer.commit()
        for _ in range(2):
            for reader, number in snapshots:
                found = reader.do(lambda site: len(site.portal_catalog.unrestrictedSearchResults(Subject="step")))
                assert found == number
