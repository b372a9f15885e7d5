"""Content for the search page: pages of several types, tags, years, authors and places; some are private."""

from datetime import datetime
from datetime import UTC
from plone.app.textfield import RichTextValue
from tests.integration.content import create
from tests.integration.people import publish
from tests.integration.people import share
from typing import Any


AUTHORS = {"anna": "Anna Berger", "bruno": "Bruno Costa", "clara": "Clara Dvořák"}
TOPICS = ("Europe", "Garden", "Winter", "Rescue", "Children", "Research", "Food", "Night")
PLACES = {"animals": "Animals", "news": "News", "station": "Rescue station"}
TYPES = ("Document", "News Item", "Event")

TEXTS = (
    "The hedgehog sleeps through the winter under a heap of leaves, and wakes when the nights are warm again.",
    "Whoever finds a hedgehog in the garden by day should have a look: it may be hungry, ill, or hurt.",
    "A hedgehog eats beetles, worms and snails; milk makes it ill.",
    "Owls, bats and moths are awake when you are asleep, and so is the hedgehog.",
)


def fill(portal: Any) -> None:
    """Fill *portal*: 48 public pages about hedgehogs, one about visits, and two private ones."""
    portal.portal_workflow.setChainForPortalTypes(("Document", "Folder", *TYPES), ("simple_publication_workflow",))
    for name, fullname in AUTHORS.items():
        portal.acl_users.userFolderAddUser(name, "secret", ["Editor"], [])
        portal.portal_membership.getMemberById(name).setMemberProperties({"fullname": fullname})
    portal.acl_users.userFolderAddUser("boss", "secret", ["Manager"], [])
    folders = {}
    for name, title in PLACES.items():
        folders[name] = create(portal, "Folder", name, title=title)
        publish(folders[name])
    for number in range(48):
        folder = folders[list(PLACES)[number % 3]]
        topic = TOPICS[number % len(TOPICS)]
        page = create(
            folder,
            TYPES[number % 7 % 3],
            f"page{number:02}",
            title=f"{topic}: a hedgehog, part {number + 1}",
            description=f"What we know about {topic.lower()}",
            subject=(topic, TOPICS[number % 3]),
            text=RichTextValue(f"<p>{'A long beginning. ' * (number % 5)}{TEXTS[number % 4]}</p>", "text/html"),
        )
        date(page, datetime(2026 - number % 4, 1 + number % 12, 10, 12, tzinfo=UTC))
        page.setCreators([list(AUTHORS)[number % 3]])
        publish(page)
        page.reindexObject()
    visits = create(portal, "Document", "visits", title="Visits", description="When we are open")
    publish(visits)
    create(portal, "Document", "secret", title="A rendezvous of hedgehogs", subject=("Hidden tag",))
    closed = create(portal, "Folder", "closed", title="Hidden place")
    publish(create(closed, "Document", "inside", title="A hedgehog in a closed garden"))


def fill_for_mara(portal: Any) -> None:
    """Fill *portal* in the same way, for a member who may read one of the hidden pages."""
    fill(portal)
    portal.acl_users.userFolderAddUser("mara", "secret", ["Member"], [])
    share(portal.secret, "mara", "Reader")


def date(page: Any, moment: datetime) -> None:
    """Set the publication date of *page* to *moment*."""
    from DateTime import DateTime

    page.setEffectiveDate(DateTime(moment))


#: A word of 160 letters, too long for any line.
LONG = ("Donaudampfschifffahrtselektrizitaetenhauptbetriebswerk" * 3)[:160]
#: Ten tags, one of them as long.
TAGS = (*(f"Steamer {number}" for number in range(9)), LONG)


def add_long_words(portal: Any) -> None:
    """Add two events about a paddle steamer to *portal*, with words of 160 letters and ten tags, in one place."""
    folder = create(portal, "Folder", "long", title=LONG, exclude_from_nav=True)
    publish(folder)
    for number in range(2):
        text = f"<p>A paddle steamer, {LONG} and {LONG}.</p>"
        page = create(
            folder,
            "Event",
            f"steamer{number}",
            title=f"{LONG} steamer {number}",
            description=LONG,
            subject=TAGS,
            text=RichTextValue(text, "text/html"),
        )
        date(page, datetime(2024, 5, 10, 12, tzinfo=UTC))
        page.setCreators(["anna"])
        publish(page)
        page.reindexObject()
