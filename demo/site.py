"""The Plone site of the demo: created once, and found again at the next start."""

from AccessControl.SecurityManagement import getSecurityManager
from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import noSecurityManager
from AccessControl.SecurityManagement import setSecurityManager
from collections.abc import Iterator
from contextlib import contextmanager
from demo import plan
from demo.server import DemoError
from plone.app.theming.interfaces import IThemeSettings
from plone.pgcatalog.request import with_request
from plone.registry.interfaces import IRegistry
from Products.CMFPlone.factory import addPloneSite
from typing import Any
from zope.annotation.interfaces import IAnnotations
from zope.component import getUtility
from zope.component.hooks import setSite
from zope.globalrequest import clearRequest
from zope.globalrequest import setRequest

import transaction


SITE_ID = "Plone"
SITE_TITLE = "The catalog in PostgreSQL"
PROFILE = "plone.pgcatalog:default"
#: The annotation of a site that was created by the demo, with the parameters.
MARKER = "pgcatalog-demo"


def published(root: Any) -> Any:
    """Return the application root with a request, which is the current one."""
    app = with_request(root)
    setRequest(app.REQUEST)
    return app


def close(app: Any) -> None:
    """End the effects of published, become and setSite; close the connection."""
    # First the site: during the abort, Plone looks for utilities, which an incomplete
    # site does not have.
    setSite(None)
    transaction.abort()
    noSecurityManager()
    clearRequest()
    app.REQUEST.close()
    app._p_jar.close()


def ensure_admin(app: Any) -> None:
    """Create the manager of the whole server: admin with the password admin."""
    if app.acl_users.getUser(plan.ADMIN) is None:
        app.acl_users._doAddUser(plan.ADMIN, plan.ADMIN, ["Manager"], [])
        transaction.commit()


def become(context: Any, user_id: str | None) -> None:
    """Act as that user of the site or of the root from now on; None: anonymous."""
    if user_id is None:
        noSecurityManager()
        return
    root = context.getPhysicalRoot()
    for folder in (context.acl_users, root.acl_users):
        if (user := folder.getUserById(user_id)) is not None:
            newSecurityManager(None, user.__of__(folder))
            return
    raise DemoError(f"There is no user {user_id} in {context.absolute_url()}.")


@contextmanager
def acting_as(context: Any, user_id: str | None) -> Iterator[None]:
    """Act as that user inside the block only."""
    before = getSecurityManager()
    become(context, user_id)
    try:
        yield
    finally:
        setSecurityManager(before)


def find_site(app: Any) -> Any:
    """Return the demo site, and set it as the site of this thread; None if there is none.

    Raises DemoError if the site with that name was not created by the demo.
    """
    if SITE_ID not in app.objectIds():
        return None
    site = app[SITE_ID]
    if MARKER not in IAnnotations(site):
        raise DemoError(
            f"The database has a site {SITE_ID} that was not made by the demo: "
            "it is left alone. Choose another database."
        )
    setSite(site)
    return site


def marker(site: Any) -> dict[str, Any]:
    """Return the parameters of the site's creation."""
    return dict(IAnnotations(site)[MARKER])


def mark(site: Any, **values: Any) -> None:
    """Store parameters of the site's creation."""
    annotations = IAnnotations(site)
    annotations[MARKER] = {**annotations.get(MARKER, {}), **values}


def make_site(app: Any, zone: str, **marked: Any) -> Any:
    """Create an empty Plone site in the time zone *zone* with the stock catalog, its users and groups."""
    site = addPloneSite(
        app,
        SITE_ID,
        title=SITE_TITLE,
        distribution_name="classic",
        setup_content=False,
        default_language="en",
        portal_timezone=zone,
    )
    # Without its profile anonymous visitors may not use the REST API.
    site.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    registry = getUtility(IRegistry)
    registry["plone.available_languages"] = ["en", "de", "zh-cn"]
    # Plone does not theme pages of the host 127.0.0.1, which is also an address of the demo.
    registry.forInterface(IThemeSettings).hostnameBlacklist = []
    _add_people(site)
    mark(site, complete=False, zone=zone, **marked)
    transaction.commit()
    return site


def _add_people(site: Any) -> None:
    site.portal_groups.addGroup(plan.RESEARCHERS, title="Researchers")
    for person in plan.PEOPLE:
        site.portal_membership.addMember(person.id, plan.PASSWORD, list(person.roles), [])
        member = site.portal_membership.getMemberById(person.id)
        member.setMemberProperties({"fullname": person.fullname, "email": f"{person.id}@example.org"})
        for group in person.groups:
            site.portal_groups.addPrincipalToGroup(person.id, group)


def install(site: Any) -> None:
    """Replace the catalog by ours, in a separate commit."""
    site.portal_setup.runAllImportStepsFromProfile(f"profile-{PROFILE}")
    mark(site, installed=True)
    transaction.commit()
