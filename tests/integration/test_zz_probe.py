import re, os
from tests.integration.volto_pages import *
from tests.integration.traffic import traced_requests
from tests.integration.web import MANAGER, Site
from tests.integration import site as sites

def relate(portal):
    make_volto_page(portal)
    from z3c.relationfield import RelationValue
    from zope.intid.interfaces import IIntIds
    from zope.component import getUtility
    from zope.event import notify
    from zope.lifecycleevent import ObjectModifiedEvent
    intids = getUtility(IIntIds)
    from tests.integration.content import create
    for n in range(50): create(portal.targets, "Document", f"rel{n:02}", title=f"Rel {n}")
    portal.page.relatedItems = [RelationValue(intids.getId(portal.targets[f"rel{n:02}"])) for n in range(50)]
    notify(ObjectModifiedEvent(portal.page))
SHARED = relate

def save(site, n):
    with site.inside() as portal:
        portal.other.setRights(f"Another {n}"); portal.other.reindexObject()

def test_probe(shared_site):
    site=shared_site
    with site.inside() as portal:
        uid=portal.page.UID()
        uids=[portal.targets[f"rel{n:02}"].UID() for n in range(10)]
    for path, login, q in [("/plone/page",MANAGER,{"expand":EXPANSIONS}),("/plone/@relations",MANAGER,{"source":uid}),("/plone/@relations",MANAGER,{"target":uids[0]}), ("/plone/@linkintegrity",MANAGER,{"uids":uids}),("/plone",MANAGER,{"expand":EXPANSIONS}),("/plone/targets",MANAGER,{"fullobjects":1})]:
        W=int(os.environ.get('W','330'))
        with sites.opened(site.dsn) as db:
            s2=Site(db)
            s2.web.get("/plone/other", login, accept="application/json")
            with traced_requests(db) as t: r=s2.web.get(path, login, accept="application/json", **q)
            assert r.status==200, r.text
            print("===== FIRST", path, login, q, t[0].round_trips)
            for s in t[0].statements: print("   ", re.sub(r"\s+"," ",s)[:W])
        for _ in range(3):
            r = site.web.get(path, login, accept="application/json", **q); assert r.status==200, r.text
        with traced_requests(site.db) as t: site.web.get(path, login, accept="application/json", **q)
        quiet=t[0].round_trips
        save(site, 1); site.web.get(path, login, accept="application/json", **q); save(site,2)
        with traced_requests(site.db) as t: r=site.web.get(path, login, accept="application/json", **q)
        print("=====", path, login, q, "quiet", quiet, "after", t[0].round_trips)
        for s in t[0].statements: print("   ", re.sub(r"\s+"," ",s)[:W])
