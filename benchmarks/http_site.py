"""The site of the benchmark ``pages``: created and filled in this process, served by others."""

from benchmarks.content import FILL_CACHE
from benchmarks.content import filled_site
from benchmarks.content import site_texts
from benchmarks.page_kinds import EDITOR
from benchmarks.page_kinds import READER
from benchmarks.page_kinds import Visited
from benchmarks.texts import generated_texts
from benchmarks.volto_site import furnish_for_volto
from benchmarks.worker import Progress
from benchmarks.zope_site import PloneSite
from benchmarks.zope_site import SITE
from typing import Any

import transaction


#: Up to this number of documents, navigation has as many levels as in a new site, which shows all of them.  With more,
#: administrators reduce the levels.
ALL_IN_NAVIGATION = 1_000
#: One folder in this many gives the reader a local role.
SHARED = 4
#: Number of visited documents.
VISITED = 200


def make(options: dict[str, Any], progress: Progress) -> Visited:
    """Create the site according to the *options* of a worker; return the addresses to visit."""
    place = filled_site({"cache_size": FILL_CACHE, **options}, progress, PloneSite, generated_texts)
    texts = site_texts(options, generated_texts)
    site = place.enter()
    published = [each for each in texts.documents if each.state == "published"]
    furnish(site, options["docs"], len(texts.folders))
    furnish_for_volto(site, [f"{each.folder}/{each.id}" for each in published])
    transaction.commit()
    place.close()
    step = max(1, len(published) // VISITED)
    paths = [f"{each.folder}/{each.id}" for each in published[::step][:VISITED]]
    return Visited(f"/{SITE}", len(texts.folders), paths, texts.words)


def furnish(site: Any, count: int, number_of_folders: int) -> None:
    """Add the REST API, users, a collection and the settings of navigation, and publish the folders; does not commit."""
    site.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    for login, roles in ((EDITOR, ["Member", "Editor"]), (READER, ["Member"])):
        name, _, password = login.partition(":")
        site.acl_users.userFolderAddUser(name, password, roles, [])
    for number in range(number_of_folders):
        folder = site[f"folder{number}"]
        site.portal_workflow.doActionFor(folder, "publish")
        if number % SHARED == 0:
            folder.manage_setLocalRoles("reader", ["Reader"])
            folder.reindexObjectSecurity()
    site.invokeFactory(
        "Collection",
        "newest",
        title="Newest documents",
        query=[
            {
                "i": "portal_type",
                "o": "plone.app.querystring.operation.selection.any",
                "v": ["Document"],
            }
        ],
        sort_on="modified",
        sort_reversed=True,
        item_count=30,
    )
    site.portal_workflow.doActionFor(site.newest, "publish")
    site.portal_registry["plone.enable_sitemap"] = True
    if count > ALL_IN_NAVIGATION:
        site.portal_registry["plone.navigation_depth"] = 1
