"""Concurrent commits: no unnecessary conflict, and a catalog that equals the content."""

from collections.abc import Callable
from OFS.CopySupport import CopyError
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.editors import abort
from tests.integration.editors import differences
from tests.integration.editors import editor
from tests.integration.fixtures import SiteWith
from typing import Any
from zExceptions import BadRequest
from ZODB.POSException import ConflictError

import contextlib
import pytest
import transaction


pytestmark = pytest.mark.slow


Action = Callable[[Any, str], Any]


def make_tree(site: Any, name: str = "tree") -> None:
    """Create /name/inner/page and the other content that the actions need."""
    site.invokeFactory("Folder", name, title="Tree")
    tree = site[name]
    for id in ("one", "two"):
        tree.invokeFactory("Document", id, title=f"Page {id}")
    tree.invokeFactory("Folder", "inner", title="Inner")
    tree.inner.invokeFactory("Document", "page", title="Page")


def edit(site: Any, name: str) -> None:
    page = site[name].inner.page
    page.title = "Edited"
    page.reindexObject()


def edit_elsewhere(site: Any, name: str) -> None:
    page = site[name].one
    page.title = "Edited"
    page.reindexObject()


def publish_elsewhere(site: Any, name: str) -> None:
    site.portal_workflow.doActionFor(site[name].two, "publish")


def add(site: Any, name: str, id: str = "new") -> None:
    create(site[name].inner, "Document", id, title="New")


def delete(site: Any, name: str) -> None:
    site[name].inner.manage_delObjects(["page"])


def delete_tree(site: Any, name: str) -> None:
    site[name].manage_delObjects(["inner"])


def share_with(obj: Any, user: str) -> None:
    obj.manage_setLocalRoles(user, ["Reader"])
    obj.reindexObjectSecurity()


def share_tree(site: Any, name: str) -> None:
    share_with(site[name], "mara")


def share(site: Any, name: str) -> None:
    share_with(site[name].inner, "edith")


def share_page(site: Any, name: str) -> None:
    share_with(site[name].inner.page, "mara")


def share_site(site: Any, name: str) -> None:
    """Stores the site only, and catalogues everything in it."""
    share_with(site, "mara")


def publish(site: Any, name: str) -> None:
    site.portal_workflow.doActionFor(site[name].inner.page, "publish")


def rename_tree(site: Any, name: str) -> None:
    if "inner" in site[name]:
        site[name].manage_renameObject("inner", "renamed")


def rename_top(site: Any, name: str) -> None:
    site.manage_renameObject(name, f"{name}-new")


def reindex_index(site: Any, name: str) -> None:
    site.portal_catalog.manage_reindexIndex(["Title", "allowedRolesAndUsers"])


def rebuild(site: Any, name: str) -> None:
    site.portal_catalog.clearFindAndRebuild()


def tolerant(action: Action) -> Action:
    """Let *action* find the tree under its new name, or without the page, as in a repeated request."""

    def repeated(site: Any, name: str) -> Any:
        top = name if name in site else f"{name}-new"
        with contextlib.suppress(KeyError, AttributeError, BadRequest, CopyError):
            action(site, top)

    return repeated


ACTIONS: list[Action] = [edit, add, delete, delete_tree, share_tree, share, rename_tree, rename_top]
#: Pairs that conflict in the catalog only: both change the readers of the page, or one adds an object that inherits them.
OWN_CONFLICTS = {("share_tree", "share"), ("share", "share_tree"), ("share_tree", "add"), ("add", "share_tree")}
#: Further pairs: actions that catalogue every object, and changes of a page whose container gets another name.
PAIRS: list[tuple[Action, Action]] = [
    *((reindex_index, edit), (edit, reindex_index), (add, reindex_index), (rename_top, reindex_index)),
    *((rebuild, edit), (rebuild, add), (rebuild, rename_top), (rebuild, share), (edit, rebuild)),
    *(pair for other in (rename_tree, edit, delete_tree) for pair in ((share_site, other), (other, share_site))),
    *(pair for other in (publish, share_page) for pair in ((rename_top, other), (other, rename_top))),
]


def fill(portal: Any) -> None:
    portal.portal_workflow.setChainForPortalTypes(("Document",), ("simple_publication_workflow",))
    make_tree(portal)


def fill_for_each(portal: Any) -> None:
    fill(portal)
    for action in ACTIONS:
        make_tree(portal, f"{action.__name__}-tree")


CONTENT = fill


def own_conflicts(one: Any, two: Any, first: Action, second: Action, name: str) -> set[tuple[str, str]]:
    """Let *second* commit after *first*; return the pair if they conflict where the storage alone does not."""
    two.begin()
    one.begin()
    one.do(first, name)
    two.do(second, name)
    one.commit()
    try:
        two.commit()
    except ConflictError as error:
        two.do(abort)
        two.do(tolerant(second), name)
        two.finish(tolerant(second), name)
        return set() if error.oid is not None else {(first.__name__, second.__name__)}
    return set()


@pytest.mark.parametrize("first", ACTIONS)
def test_any_two_transactions_leave_a_sound_catalog(site_with: SiteWith, first: Action) -> None:
    """The catalog adds no conflicts, except for the known pairs; each object has the roles that both have granted."""
    with sites.opened(site_with(fill_for_each)) as db, editor(db) as one, editor(db) as two:
        found = set()
        for second in ACTIONS:
            found |= own_conflicts(one, two, first, second, f"{second.__name__}-tree")
        assert one.do(differences) == []
    assert found == {pair for pair in OWN_CONFLICTS if pair[0] == first.__name__}


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_only_a_rebuild_waits_for_other_transactions(db: Any, first: Action, second: Action) -> None:
    with editor(db) as one, editor(db) as two:
        found = own_conflicts(one, two, first, second, "tree")
        assert one.do(differences) == []
    assert found == ({(first.__name__, "rebuild")} if second is rebuild else set())


@pytest.mark.parametrize(
    ("first", "second"),
    [(edit, edit_elsewhere), (edit, publish_elsewhere), (publish_elsewhere, edit_elsewhere), (add, edit_elsewhere)],
)
def test_changes_of_two_objects_never_conflict(db: Any, first: Action, second: Action) -> None:
    with editor(db) as one, editor(db) as two:
        one.do(first, "tree")
        two.do(second, "tree")
        one.commit()
        two.commit()
        assert two.do(differences) == []


def test_additions_to_one_folder_conflict_in_the_folder(db: Any) -> None:
    """As with plain storage: both change the folder's modification date."""
    with editor(db) as one, editor(db) as two:
        one.do(add, "tree")
        two.do(add, "tree", "another")
        one.commit()
        with pytest.raises(ConflictError) as caught:
            two.commit()
        assert caught.value.oid is not None
        two.do(abort)
        two.do(add, "tree", "another")
        assert two.finish(add, "tree", "another") == 0
        assert two.do(differences) == []
        assert sorted(two.do(lambda site: site.tree.inner.objectIds())) == ["another", "new", "page"]


def test_the_opposite_order_is_a_conflict_and_no_deadlock(db: Any) -> None:

    def one_two(site: Any, name: str, ids: tuple[str, ...]) -> None:
        for id in ids:
            site[name][id].title = f"{ids}"
            site[name][id].reindexObject()

    with editor(db) as one, editor(db) as two:
        one.do(one_two, "tree", ("one", "two"))
        two.do(one_two, "tree", ("two", "one"))
        commits = [one.start(lambda site: transaction.commit()), two.start(lambda site: transaction.commit())]
        failures = [commit.exception(60) for commit in commits]
        assert sorted(type(f) for f in failures if f is not None) == [ConflictError]
        for loser, failure, ids in zip((one, two), failures, (("one", "two"), ("two", "one")), strict=True):
            if failure is not None:
                loser.do(abort)
                loser.do(one_two, "tree", ids)
                loser.commit()
        assert one.do(differences) == []
