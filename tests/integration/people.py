"""Users, and content that not everybody may see."""

from AccessControl import getSecurityManager
from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import noSecurityManager
from AccessControl.SpecialUsers import nobody
from collections.abc import Iterator
from contextlib import contextmanager
from DateTime import DateTime
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from typing import Any


PAST, FUTURE = DateTime("2001/01/01 UTC"), DateTime("2099/01/01 UTC")
INACTIVE = "Access inactive portal content"
USERS = {"mara": ["Member"], "edith": ["Editor"], "rita": ["Reviewer"], "boss": ["Manager"]}
PEOPLE = (None, *USERS)


@contextmanager
def acting_as(portal: Any, user_id: str | None) -> Iterator[None]:
    """Act as the site's user *user_id* within the block; None for anonymous."""
    before = getSecurityManager().getUser()
    if user_id is None:
        newSecurityManager(None, nobody.__of__(portal.acl_users))
    else:
        sites.login(portal.getPhysicalRoot(), user_id, portal.acl_users)
    try:
        yield
    finally:
        noSecurityManager()
        newSecurityManager(None, before)


def add_plain_users(portal: Any) -> None:
    for name, roles in USERS.items():
        portal.acl_users.userFolderAddUser(name, "secret", roles, [])


def add_users(portal: Any) -> None:
    add_plain_users(portal)
    portal.portal_groups.addGroup("staff")
    portal.portal_groups.addPrincipalToGroup("mara", "staff")
    chain = ("simple_publication_workflow",)
    portal.portal_workflow.setChainForPortalTypes(("Document", "Folder"), chain)


def share(obj: Any, user_id: str, *roles: str) -> None:
    obj.manage_setLocalRoles(user_id, list(roles))
    obj.reindexObjectSecurity()


def publish(obj: Any) -> None:
    obj.portal_workflow.doActionFor(obj, "publish")


def make_content(portal: Any) -> None:
    """A public folder and a private one; in each a page that is active, expired, not yet effective, and shared."""
    for folder_id in ("public", "closed"):
        folder = create(portal, "Folder", folder_id)
        for state in ("draft", "open"):
            for page_id, effective, expires in (("now", None, None), ("old", None, PAST), ("later", FUTURE, None)):
                page = create(folder, "Document", f"{state}-{page_id}", title=f"needle {state} {page_id}")
                if state == "open":
                    publish(page)
                page.setExpirationDate(expires)
                if effective:
                    page.setEffectiveDate(effective)
                page.reindexObject()
        share(create(folder, "Document", "for-mara", title="needle"), "mara", "Reader")
        share(create(folder, "Document", "for-staff", title="needle"), "staff", "Editor")
    publish(portal.public)
    share(portal.closed, "rita", "Editor")
    late = create(portal.closed, "Document", "late-for-mara", title="needle")
    late.setEffectiveDate(FUTURE)
    share(late, "mara", "Owner")
    late.reindexObject()


def make_all(portal: Any) -> None:
    """Create ``make_content``'s content, users, and content of restricted visibility."""
    populate(portal)
    add_users(portal)
    make_content(portal)


def run_script(portal: Any, catalog: Any, body: str) -> Any:
    """Run *body* as an untrusted Script (Python) that has *catalog* as its argument."""
    from Products.PythonScripts.PythonScript import PythonScript

    script = PythonScript("probe")
    script.ZPythonScript_edit("catalog", body)
    return script.__of__(portal)(catalog)


def viewable(portal: Any, catalog: Any) -> dict[str, bool]:
    """Return path -> is active, of the objects that the current user may view, without a catalog query."""
    check = getSecurityManager().checkPermission
    found = {}
    for path in catalog._catalog.uids:
        obj = portal.unrestrictedTraverse(path)
        if check("View", obj):
            found[path] = not (obj.effective().isFuture() or obj.expires().isPast())
    return found
