"""Random sequences of editors' writes, with comparisons before and after the transaction's end.

A sequence works in a folder of its own, so it can be repeated; a step is a name and three numbers, which choose among the
current objects.
"""

from checks.differential.compare import compare_case
from checks.differential.compare import compare_contents
from checks.differential.compare import compare_rows
from checks.differential.compare import compare_unique
from checks.differential.compare import Difference
from checks.differential.compare import sample
from checks.differential.queries import Case
from checks.differential.queries import QueryMaker
from collections.abc import Callable
from plone.base.utils import unrestricted_construct_instance
from plone.indexer.wrapper import IndexableObjectWrapper
from plone.uuid.interfaces import IUUID
from random import Random
from tests.property import content
from tests.property.pair import Pair
from typing import Any
from zope.component.hooks import site

import traceback
import transaction


Step = tuple[str, int, int, int]
PARTIAL = (
    *(["Subject"], ["Title", "SearchableText"], ["modified"], ["path"], ["allowedRolesAndUsers"], ["rank", "marks"]),
)


def make_steps(random: Random) -> list[Step]:
    """Return a random sequence; it ends with a commit or an abort."""
    names = [random.choice(WEIGHTED) for _ in range(random.randint(4, 14))]
    names.append(random.choice(("commit", "commit", "abort")))
    return [(name, *(random.randrange(1 << 20) for _ in range(3))) for name in names]


class Run:
    """Runs one sequence in the folder *id*; ``run`` returns the first difference."""

    def __init__(
        self, pair: Pair, other: Pair, maker: QueryMaker, id: str, explain: Callable[[Difference], bool]
    ) -> None:
        self.pair = pair
        self.other = other
        self.maker = maker
        self.id = id
        self.explained = explain
        self.savepoints: list[Any] = []
        #: path -> UUIDs of the objects that were catalogued under it
        self.catalogued: dict[str, set[str]] = {}
        self.random = Random(id)
        self.comparisons = 0

    @property
    def folder(self) -> Any:
        return self.pair.portal[self.id]

    def run(self, steps: list[Step]) -> Difference | None:
        """Create the folder, apply *steps* and compare; clean up in any case."""
        random = Random(self.id.rstrip("0123456789"))
        transaction.abort()
        root = content.plant(self.pair.portal, random, self.id, "Folder")
        for id in ("page", "my_folder", "my-folder"):
            content.plant(root, random, id, "Document" if id == "page" else "Folder")
        for id in random.sample(content.IDS, 4):
            content.plant(root["my_folder"], random, id)
        transaction.commit()
        self.other.begin()
        try:
            for number, step in enumerate(steps):
                difference = self.apply(step)
                if difference is not None:
                    return Difference(
                        f"step {number} {step[0]}: {difference.kind}",
                        difference.subject,
                        difference.ours,
                        difference.theirs,
                    )
        finally:
            self.clean_up()
        return compare_contents(self.pair)

    def clean_up(self) -> None:
        transaction.abort()
        self.savepoints.clear()
        for catalog in (self.pair.ours, self.pair.oracle):
            for path in [p for p in catalog._catalog.uids if p.startswith(f"/plone/alias-{self.id}")]:
                catalog.uncatalog_object(path)
        if self.id in self.pair.portal.objectIds():
            self.pair.portal.manage_delObjects([self.id])
        transaction.commit()

    def apply(self, step: Step) -> Difference | None:
        """Apply *step*; return the difference found, if it is a step that compares."""
        name, *numbers = step
        try:
            STEPS[name](self, *numbers)
        except Exception as error:  # noqa: BLE001  no step is meant to fail
            return Difference("error", step, "".join(traceback.format_exception(error)[-12:]), "")
        if name in COMPARED or numbers[0] % 3 == 0:
            return self.compare(Random(numbers[2]))
        return None

    def compare(self, random: Random) -> Difference | None:
        """Compare contents, some rows, some unique values and some queries; also in the second connection."""
        self.comparisons += 1
        self.pair.ours.searchResults(getId="nobody")  # processes the queue
        difference = compare_contents(self.pair)
        if difference is not None:
            return difference
        inside = [p for p in self.pair.oracle._catalog.uids if self.id in p]
        checks: list[Callable[[], Difference | None]] = [
            lambda: compare_rows(self.pair, sample(random, inside, 4)),
            lambda: compare_unique(self.pair, sample(random, self.maker.values.names, 2)),
        ]
        cases = [self.maker.case(f"/plone/{self.id}") for _ in range(5)]
        checks += [lambda case=case: compare_case(self.pair, case) for case in cases]
        if random.random() < 0.5:
            checks += [lambda case=case: self.compare_elsewhere(case) for case in cases[:2]]
            checks.append(lambda: compare_contents(self.other))
        for check in checks:
            difference = check()
            if difference is not None and not self.explained(difference):
                return difference
        return None

    def compare_elsewhere(self, case: Case) -> Difference | None:
        """Compare a case in the second connection, whose queries use its own folders."""
        with site(self.other.portal):
            return compare_case(self.other, case)

    # -- choosing

    def objects(self) -> list[Any]:
        return list(content.walk(self.folder))

    def choose(self, number: int, folders: bool = False, below: bool = False) -> Any:
        found = [o for o in self.objects()[int(below) :] if not folders or o.isPrincipiaFolderish]
        return found[number % len(found)] if found else None

    def was_anothers(self, path: str, obj: Any) -> bool:
        """Record that *path* is catalogued for *obj*; return whether it was for another object before."""
        uuids = self.catalogued.setdefault(path, set())
        uuids.add(IUUID(obj))
        return len(uuids) > 1

    def free_id(self, container: Any, number: int) -> str:
        id = content.IDS[number % len(content.IDS)]
        return id if id not in container.objectIds() else f"{id}-{number}"


def create(run: Run, a: int, b: int, c: int) -> None:
    container = run.choose(a, folders=True)
    content.plant(container, Random(b), run.free_id(container, c))


def create_bare(run: Run, a: int, b: int, c: int) -> None:
    """Create an object, then change it without an event: the values at the end of the queue apply."""
    container = run.choose(a, folders=True)
    obj = unrestricted_construct_instance("Document", container, run.free_id(container, c), title="early")
    obj.title = content.some_text(Random(b))


def rename(run: Run, a: int, b: int, c: int) -> None:
    obj = run.choose(a, below=True)
    if obj is not None:
        container = obj.aq_parent
        container.manage_renameObject(obj.getId(), run.free_id(container, b))


def swap(run: Run, a: int, b: int, c: int) -> None:
    """Exchange the ids of two siblings."""
    obj = run.choose(a, below=True)
    if obj is None:
        return
    container = obj.aq_parent
    ids = sorted(container.objectIds())
    one, two = obj.getId(), ids[b % len(ids)]
    if one != two:
        for old, new in ((one, "swapping"), (two, one), ("swapping", two)):
            container.manage_renameObject(old, new)


def paste(run: Run, a: int, b: int, c: int, move: bool = False) -> None:
    obj, target = run.choose(a, below=True), run.choose(b, folders=True)
    if obj is None or len(run.objects()) > 40:
        return
    ours, theirs = obj.getPhysicalPath(), target.getPhysicalPath()
    if theirs[: len(ours)] == ours or (move and obj.getId() in target.objectIds()):
        return
    source = obj.aq_parent
    clipboard = source.manage_cutObjects if move else source.manage_copyObjects
    target.manage_pasteObjects(clipboard([obj.getId()]))


def move(run: Run, a: int, b: int, c: int) -> None:
    paste(run, a, b, c, move=True)


def delete(run: Run, a: int, b: int, c: int) -> None:
    obj = run.choose(a, below=True)
    if obj is not None:
        obj.aq_parent.manage_delObjects([obj.getId()])


def replace(run: Run, a: int, b: int, c: int) -> None:
    """Delete an object and create another under its id.

    Without the search in between, ZCatalog too still finds the children of the old one, and the creation fails.
    """
    obj = run.choose(a, below=True)
    if obj is not None:
        container, id = obj.aq_parent, obj.getId()
        container.manage_delObjects([id])
        search(run, a, b, c)
        content.plant(container, Random(b), id)


def edit(run: Run, a: int, b: int, c: int) -> None:
    obj, random = run.choose(a), Random(b)
    obj.title = content.some_text(random)
    obj.setSubject(random.sample(content.SUBJECTS, random.randint(0, 3)))
    for name in ("rank", "marks", "flag", "deadline", "sale_since"):
        if random.random() < 0.2 and name in obj.__dict__:
            delattr(obj, name)
    content.decorate(obj, random)
    obj.reindexObject()
    if random.random() < 0.3:
        obj.title = "late " + content.some_text(random, 2)


def workflow(run: Run, a: int, b: int, c: int) -> None:
    obj, tool = run.choose(a), run.pair.portal.portal_workflow
    actions = sorted(action["id"] for action in tool.listActions(object=obj))
    if actions:
        tool.doActionFor(obj, actions[b % len(actions)])


def partial(run: Run, a: int, b: int, c: int) -> None:
    obj, random = run.choose(a), Random(b)
    obj.title = content.some_text(random)
    obj.setSubject(random.sample(content.SUBJECTS, random.randint(0, 3)))
    content.decorate(obj, random)
    obj.reindexObject(idxs=PARTIAL[c % len(PARTIAL)])


def security(run: Run, a: int, b: int, c: int) -> None:
    obj, random = run.choose(a), Random(b)
    if random.random() < 0.5:
        obj.manage_setLocalRoles(random.choice(("anna", "otto", "team")), [random.choice(("Reader", "Editor"))])
    else:
        obj.manage_delLocalRoles(["anna", "otto", "team"])
    obj.reindexObjectSecurity()


def catalog_object(run: Run, a: int, b: int, c: int) -> None:
    """Catalogue directly, in part, with or without metadata, sometimes under a second path."""
    obj, random = run.choose(a), Random(b)
    obj.rank = random.choice(content.RANKS)
    path = "/".join(obj.getPhysicalPath())
    if random.random() < 0.25:
        path = f"/plone/alias-{run.id}-{random.randint(0, 2)}"
    idxs = None if random.random() < 0.4 else PARTIAL[c % len(PARTIAL)]
    if run.was_anothers(path, obj):
        idxs = None  # replaced-in-part
        if getattr(IndexableObjectWrapper(obj, run.pair.ours), "SearchableText", None) is None:
            run.pair.oracle.uncatalog_object(path)  # vanished-value
    metadata = random.choice((0, 1))
    for catalog in (run.pair.ours, run.pair.oracle):
        catalog.catalog_object(obj, path, idxs=idxs, update_metadata=metadata)
    search(run, a, b, c)  # late-metadata


def uncatalog_object(run: Run, a: int, b: int, c: int) -> None:
    path = "/".join(run.choose(a).getPhysicalPath())
    if b % 4 == 0:
        path = f"/plone/alias-{run.id}-{b % 3}"
    for catalog in (run.pair.ours, run.pair.oracle):
        catalog.uncatalog_object(path)


def unindex(run: Run, a: int, b: int, c: int) -> None:
    run.choose(a).unindexObject()


def index(run: Run, a: int, b: int, c: int) -> None:
    run.choose(a).indexObject()


def reorder(run: Run, a: int, b: int, c: int) -> None:
    obj = run.choose(a, below=True)
    if obj is not None:
        obj.aq_parent.moveObjectToPosition(obj.getId(), b % 5)


def search(run: Run, a: int, b: int, c: int) -> None:
    """Search, which processes the queue."""
    len(run.pair.ours.unrestrictedSearchResults(path=f"/plone/{run.id}"))


def savepoint(run: Run, a: int, b: int, c: int) -> None:
    run.savepoints.append(transaction.savepoint())


def rollback(run: Run, a: int, b: int, c: int) -> None:
    """Roll back to one of the savepoints; later ones are gone."""
    if run.savepoints:
        at = a % len(run.savepoints)
        run.savepoints[at].rollback()
        del run.savepoints[at + 1 :]


def abort(run: Run, a: int, b: int, c: int) -> None:
    run.savepoints.clear()
    transaction.abort()


def commit(run: Run, a: int, b: int, c: int) -> None:
    run.savepoints.clear()
    transaction.commit()
    run.other.begin()


def forget(run: Run, a: int, b: int, c: int) -> None:
    """Have objects loaded again; changed ones stay."""
    for obj in run.objects():
        obj._p_deactivate()
    run.pair.ours._p_deactivate()


STEPS: dict[str, Callable[[Run, int, int, int], None]] = {
    f.__name__: f
    for f in (
        *(create, create_bare, rename, swap, paste, move, delete, replace, edit, workflow, partial, security),
        *(
            *(catalog_object, uncatalog_object, unindex, index, reorder, search, savepoint, rollback, abort, commit),
            forget,
        ),
    )
}
OFTEN = ("create", "rename", "move", "edit", "partial", "savepoint", "rollback", "commit", "security", "catalog_object")
WEIGHTED = (*STEPS, *OFTEN)
COMPARED = ("rollback", "abort", "commit")
