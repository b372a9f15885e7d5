"""Makes a site in the Plone that runs this, 6.0 or 6.1: ``PYTHONPATH=. python -m scripts.older.site FOLDER``.

In FOLDER are a packed ``Data.fs`` and its ``blobs`` afterwards. Nothing of ours may be imported here but `scripts.moving.content`:
the catalog needs a newer Python and a newer Plone.
"""

from AccessControl.SecurityManagement import newSecurityManager
from pathlib import Path
from scripts.moving import content
from Testing.makerequest import makerequest
from typing import Any
from zope.component.hooks import setSite
from zope.globalrequest import setRequest

import datetime
import pytz
import sys
import transaction


ZOPE_CONF = """\
%define INSTANCE {folder}
instancehome $INSTANCE
<zodb_db main>
  <filestorage>
    path {folder}/Data.fs
    blob-dir {folder}/blobs
  </filestorage>
  mount-point /
</zodb_db>
"""
SITE_ZCML = """\
<configure xmlns="http://namespaces.zope.org/zope" xmlns:five="http://namespaces.zope.org/five">
  <include package="Zope2.App" />
  <five:loadProducts file="meta.zcml" />
  <five:loadProducts />
  <five:loadProductsOverrides />
</configure>
"""
SITE = "plone"
DOCUMENTS = 10
ONLY_PUBLISHED = [
    {
        "i": "review_state",
        "o": "plone.app.querystring.operation.selection.any",
        "v": ["published"],
    }
]


def start_zope(folder: Path) -> Any:
    """Return the Zope application on a new FileStorage in *folder*."""
    from Zope2.Startup.run import configure_wsgi

    import Zope2

    (folder / "etc").mkdir(parents=True)
    (folder / "etc" / "site.zcml").write_text(SITE_ZCML)
    (folder / "etc" / "zope.conf").write_text(ZOPE_CONF.format(folder=folder))
    configure_wsgi(str(folder / "etc" / "zope.conf"))
    Zope2.startup_wsgi()
    app = makerequest(Zope2.app())
    setRequest(app.REQUEST)
    return app


def make_site(app: Any) -> Any:
    from Products.CMFPlone.factory import addPloneSite

    app.acl_users._doAddUser("admin", "secret", ["Manager"], [])
    newSecurityManager(None, app.acl_users.getUser("admin").__of__(app.acl_users))
    portal = addPloneSite(
        app,
        SITE,
        title="An older site",
        setup_content=False,
        default_language="en",
        extension_ids=("plone.app.contenttypes:default", "plonetheme.barceloneta:default"),
    )
    setSite(portal)
    transaction.commit()
    return portal


def add_more(portal: Any) -> None:
    """Add what `content.fill` has not: news, events, a collection, and a member with a role in one folder."""
    portal.acl_users.userFolderAddUser("mary", "secret", ["Member"], [])
    folder = portal["en"]
    folder.invokeFactory("News Item", "news", title="News of the day", subject=("Rot", "Grün"))
    start = pytz.timezone("Europe/Berlin").localize(datetime.datetime(2031, 5, 1, 10))
    folder.invokeFactory("Event", "event", title="A later event", start=start, end=start)
    folder.invokeFactory("Collection", "published", title="What is published", query=ONLY_PUBLISHED, sort_on="getId")
    for name in ("news", "event", "published", "hello", "folder-0"):
        portal.portal_workflow.doActionFor(folder[name], "publish")
    folder["folder-0"]["d1"].manage_setLocalRoles("mary", ["Reader"])
    folder["folder-0"]["d1"].reindexObjectSecurity()
    transaction.commit()


def main(folder: Path) -> None:
    app = start_zope(folder)
    portal = make_site(app)
    content.fill(portal, DOCUMENTS)
    add_more(portal)
    assert content.lost(portal) == []
    print(len(portal.portal_catalog))
    app._p_jar.db().pack()
    app._p_jar.db().close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
