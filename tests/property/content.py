"""One seeded, hostile content tree, and indexes for values that Plone's own indexes never get."""

from collections.abc import Iterator
from DateTime import DateTime
from datetime import datetime
from datetime import timedelta
from plone.uuid.interfaces import ATTRIBUTE_NAME
from random import Random
from tests.integration.content import BERLIN
from tests.integration.content import create
from types import SimpleNamespace
from typing import Any

import pytz


MEMBERS = {"anna": ["Member"], "otto": ["Member", "Editor"]}
#: "" is anonymous.
USERS = ("admin", "anna", "otto", "")

IDS = (
    *("page", "page2", "page-2", "page_2", "pa%ge", "über", "a b", "a~b", "news", "x", "0", "10", "folder"),
    *("Page", "日本", "o'neil", 'q"t', "back\\slash", "very-long-" + "id" * 40, "😀"),
)
WORDS = (
    *("quick", "brown", "fox", "news", "Straße", "strassen", "Über", "uber", "café", "naïve", "e-mail", "it's"),
    *("me@example.org", "www.plone.org", "C++", "foo_bar", "x", "42", "3.14", "全文检索", "目录", "日本語", "😀"),
    *("and", "or", "not", "the", "Rot", "rot", "grün", "O'Neil", '"quoted"', "100%", "back\\slash", "<b>bold</b>"),
    *("Économétrie", "co-operate", "quickly", "quicker", "foxes", "newsletter", "ﬁne", "İstanbul", "a", "A1B2"),
)
SUBJECTS = ("Rot", "rot", "grün", "x y", "O'Neil", '"q"', "", " ", "a,b", "{}", "😀", "100%", "\\", "NULL", "k" * 300)
TYPES = ("Document", "Document", "Document", "News Item", "Event", "Folder", "Link")
LANGUAGES = ("en", "de", "zh", "ja", "fr", "tr", "")
RANKS = (0, 1, 2, 10, 10.0, -5, 2.5, None, 10**20, True, 7, -0.5)
MARKS = ("1", "two", "Rot", "rot", "10", "9", "ä")
NUMBERS = (1, 2, 3, 10, 2.5, -1, 10**12)
RULES = (
    "RRULE:FREQ=WEEKLY;COUNT=5",
    "RRULE:FREQ=WEEKLY;COUNT=4\nEXDATE:20260330T093000",
    "RRULE:FREQ=MONTHLY;BYDAY=+1TU;COUNT=6",
    "RRULE:FREQ=DAILY;INTERVAL=3;COUNT=8\nRDATE:20260501T093000",
    "RRULE:FREQ=DAILY;UNTIL=20260410T000000",
)
#: Not UTC: the storage returns datetime's own, for which ZCatalog's DateRecurringIndex has no recurrences (SystemError).
ZONES = tuple(
    pytz.timezone(n) for n in ("Europe/Berlin", "Africa/Abidjan", "US/Pacific", "Asia/Kolkata", "Australia/Lord_Howe")
)
EPOCH = datetime(2026, 3, 20, 9, 30)


def extend_catalog(catalog: Any) -> None:
    """Add indexes and columns for attributes that content may or may not have."""
    catalog.addIndex("rank", "FieldIndex")
    catalog.addIndex("marks", "KeywordIndex")
    catalog.addIndex("numbers", "KeywordIndex")
    catalog.addIndex("flag", "BooleanIndex")
    catalog.addIndex("deadline", "DateIndex")
    catalog.addIndex("place", "PathIndex")
    catalog.addIndex("on sale", "DateRangeIndex", SimpleNamespace(since_field="sale_since", until_field="sale_until"))
    for name in ("rank", "marks", "numbers", "flag", "deadline"):
        catalog.addColumn(name)


def some_text(random: Random, most: int = 8) -> str:
    return " ".join(random.choice(WORDS) for _ in range(random.randint(1, most)))


def some_instant(random: Random) -> datetime:
    """Return an aware datetime in 2025..2027, in one of several zones."""
    naive = EPOCH + timedelta(minutes=random.randint(-400_000, 400_000), seconds=random.choice((0, 0, 30, 59)))
    return random.choice(ZONES).localize(naive)


def some_date(random: Random) -> DateTime:
    return DateTime(some_instant(random))


def decorate(obj: Any, random: Random) -> None:
    """Set values for the odd indexes, dates and languages on *obj*; some are missing, some are None."""
    obj.language = random.choice(LANGUAGES)
    for name, value in (
        ("rank", random.choice(RANKS)),
        ("marks", random.choice([tuple(random.sample(MARKS, random.randint(0, 3))), "plain", None, ["two"]])),
        ("numbers", random.choice([tuple(random.sample(NUMBERS, random.randint(0, 3))), 7, None, [7]])),
        ("flag", random.choice((True, False, None, 0, "x"))),
        ("deadline", random.choice((some_date(random), some_instant(random), None))),
        ("sale_since", random.choice((some_date(random), None))),
        ("sale_until", random.choice((some_date(random), None))),
    ):
        if random.random() < 0.6:
            setattr(obj, name, value)
    if random.random() < 0.3:
        obj.setEffectiveDate(random.choice((some_date(random), DateTime("2099/01/01 UTC"), DateTime("2001/01/01 UTC"))))
    if random.random() < 0.2:
        obj.setExpirationDate(random.choice((some_date(random), DateTime("2001/01/01 UTC"), None)))
    if random.random() < 0.4:
        obj.manage_setLocalRoles(
            random.choice(("anna", "otto", "team")), [random.choice(("Reader", "Owner", "Editor"))]
        )


def plant(container: Any, random: Random, id: str, portal_type: str | None = None) -> Any:
    """Create a random object *id* in *container*."""
    portal_type = portal_type or random.choice(TYPES)
    fields: dict[str, Any] = {"title": random.choice((some_text(random), "Same title", "", "10", "9", "Ä" * 400))}
    if random.random() < 0.6:
        fields["description"] = some_text(random, 20)
    if portal_type == "Event":
        start = random.choice((BERLIN, *ZONES)).localize(EPOCH + timedelta(days=random.randint(-3, 60)))
        fields |= {"start": start, "end": start + timedelta(hours=random.randint(0, 30))}
        if random.random() < 0.6:
            fields["recurrence"] = random.choice(RULES)
    obj = create(container, portal_type, id, **fields, subject=random.sample(SUBJECTS, random.randint(0, 4)))
    decorate(obj, random)
    actions = container.portal_workflow.listActions(object=obj)
    if actions and random.random() < 0.5:
        container.portal_workflow.doActionFor(obj, random.choice(sorted(a["id"] for a in actions)))
    return obj


def walk(folder: Any) -> Iterator[Any]:
    """Yield *folder* and everything in it, in the order of the paths."""
    yield folder
    if folder.isPrincipiaFolderish:
        for id in sorted(folder.objectIds()):
            yield from walk(folder[id])


def populate(portal: Any, seed: int) -> None:
    """Create the tree: four levels of folders, with ids, titles and tags that repeat."""
    random = Random(seed)
    portal.portal_workflow.setChainForPortalTypes(
        ("Document", "Folder", "News Item", "Event"), "simple_publication_workflow"
    )
    for name, roles in MEMBERS.items():
        portal.acl_users.userFolderAddUser(name, "secret-secret", roles, [])
    portal.portal_groups.addGroup("team")
    portal.portal_groups.addPrincipalToGroup("anna", "team")
    _grow(portal, random, 4)
    for number, obj in enumerate(walk(portal["my_folder"])):
        setattr(obj, ATTRIBUTE_NAME, f"{number + 1:032x}")
        obj.creation_date = some_date(random)
        obj.modification_date = some_date(random)
        portal.portal_catalog.catalog_object(obj)


def _grow(container: Any, random: Random, levels: int) -> None:
    if levels == 4:
        container = plant(container, random, "my_folder", "Folder")
        for id in ("my-folder", "my_folder2"):
            plant(container, random, id, "Folder")
    for id in random.sample(IDS, random.randint(5, 9)):
        plant(container, random, id)
    for id in random.sample(("a", "b", "my_folder", "über uns", "x%"), 2 if levels > 1 else 0):
        _grow(plant(container, random, id, "Folder"), random, levels - 1)
