"""Content of a site for the services of the REST API: needles and haystacks."""

from plone.app.textfield import RichTextValue
from tests.integration.content import create
from tests.integration.people import add_users
from tests.integration.people import FUTURE
from tests.integration.people import PAST
from tests.integration.people import publish
from tests.integration.people import share
from typing import Any


def fill(portal: Any) -> None:
    """Pages with tags and texts; some private, expired, not yet effective, or shared."""
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    add_users(portal)
    folder = create(portal, "Folder", "news", title="News")
    publish(folder)
    for number in range(12):
        page = create(
            folder,
            "Document",
            f"page{number:02}",
            title=f"Page {number:02} of the needle",
            description="About <b>needles</b> & pins",
            subject=("even" if number % 2 == 0 else "odd", f"tag{number % 3}"),
            text=RichTextValue(f"<p>A long text with one needle, number {number}, in a haystack.</p>", "text/html"),
        )
        publish(page)
    hidden = create(folder, "Document", "secret", title="The secret needle", subject=("secret",))
    share(hidden, "mara", "Reader")
    old = create(folder, "Document", "old", title="The expired needle", subject=("expired",))
    publish(old)
    old.setExpirationDate(PAST)
    old.reindexObject()
    later = create(folder, "Document", "later", title="The future needle", subject=("future",))
    publish(later)
    later.setEffectiveDate(FUTURE)
    later.reindexObject()
    event = create(portal, "Event", "fair", title="Pin fair", description="No stack of hay", subject=("odd",))
    publish(event)
