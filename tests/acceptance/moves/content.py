"""The content of a site that is moved: some of everything that editors create, and a check that all of it arrived."""

from plone.namedfile.file import NamedBlobFile
from plone.namedfile.file import NamedBlobImage
from typing import Any

import transaction


PROFILES = ("plone.app.multilingual:default", "plone.app.iterate:default", "plone.app.discussion:default")
#: A picture of one pixel, and two files, one of them larger than a page of PostgreSQL.
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
SMALL, LARGE = b"what is in a file", bytes(range(256)) * 5000
FOLDER = 50


def fill(portal: Any, documents: int) -> None:
    """Add *documents* pages to *portal*, a tenth of them files or images, and some of everything else; commits."""
    from plone.base.utils import get_installer

    installer = get_installer(portal)
    for profile in PROFILES:
        product = profile.partition(":")[0]
        if not installer.is_product_installed(product):
            installer.install_product(product)
    transaction.commit()
    add_translations(portal)
    english = portal["en"]
    add_files(english)
    page = english[english.invokeFactory("Document", "page", title="First title")]
    add_versions(page)
    add_comments(page)
    add_working_copy(english)
    english.invokeFactory("Document", "old-name", title="Renamed")
    transaction.savepoint(optimistic=True)
    english.manage_renameObject("old-name", "new-name")
    transaction.commit()
    add_many(english, documents)


def add_translations(portal: Any) -> None:
    from plone.app.multilingual.browser.setup import SetupMultilingualSite
    from plone.app.multilingual.interfaces import ITranslationManager
    from plone.registry.interfaces import IRegistry
    from zope.component import getUtility

    getUtility(IRegistry)["plone.available_languages"] = ["en", "de"]
    SetupMultilingualSite().setupSite(portal)
    transaction.commit()
    for code, title in (("en", "Hello"), ("de", "Hallo")):
        portal[code].invokeFactory("Document", title.lower(), title=title, language=code)
    transaction.savepoint(optimistic=True)
    ITranslationManager(portal["en"]["hello"]).register_translation("de", portal["de"]["hallo"])
    transaction.commit()


def add_files(folder: Any) -> None:
    for name, data in (("small", SMALL), ("large", LARGE)):
        folder.invokeFactory("File", name, title=name, file=NamedBlobFile(data, filename=f"{name}.bin"))
    folder.invokeFactory("Image", "dot", title="dot", image=NamedBlobImage(DOT, filename="dot.png"))


def add_versions(page: Any) -> None:
    repository = page.portal_repository
    repository.applyVersionControl(page, comment="first")
    page.title = "Second title"
    page.reindexObject()
    repository.save(page, comment="second")


def add_comments(page: Any) -> None:
    from plone.app.discussion.interfaces import IConversation
    from zope.component import createObject

    comment = createObject("plone.Comment")
    comment.text = "A remark"
    IConversation(page).addComment(comment)


def add_working_copy(folder: Any) -> None:
    from plone.app.iterate.interfaces import ICheckinCheckoutPolicy

    folder.invokeFactory("Document", "original", title="Original")
    transaction.savepoint(optimistic=True)
    copy = ICheckinCheckoutPolicy(folder["original"]).checkout(folder)
    copy.title = "Worked on"
    copy.reindexObject()


def add_many(folder: Any, documents: int) -> None:
    """Add *documents* in folders of FOLDER, each in a separate transaction."""
    for start in range(0, documents, FOLDER):
        name = f"folder-{start // FOLDER}"
        folder.invokeFactory("Folder", name, title=name)
        inner = folder[name]
        for number in range(start, min(documents, start + FOLDER)):
            text = f"Paragraph {number} about storage. " * 40
            if number % 10 == 9:
                inner.invokeFactory("File", f"f{number}", file=NamedBlobFile(text.encode() * 8, filename="notes.txt"))
            else:
                inner.invokeFactory("Document", f"d{number}", title=f"Document {number}", description=text)
        transaction.commit()
        folder._p_jar.cacheGC()


def lost(portal: Any) -> list[str]:
    """Return the parts of the content from `fill` that are missing; checks in the working copy, and commits nothing."""
    from plone.app.discussion.interfaces import IConversation
    from plone.app.iterate.interfaces import ICheckinCheckoutPolicy
    from plone.app.multilingual.interfaces import ITranslationManager
    from plone.app.redirector.interfaces import IRedirectionStorage
    from zope.component import getUtility

    folder, path = portal["en"], "/".join(portal.getPhysicalPath())
    page = folder["page"]
    versions = [version.object.title for version in page.portal_repository.getHistory(page)]
    translations = ITranslationManager(portal["de"]["hallo"]).get_translations()
    is_there = {
        "files": (folder["small"].file.data, folder["large"].file.data, folder["dot"].image.data)
        == (SMALL, LARGE, DOT),
        "versions": versions[:2] == ["Second title", "First title"],
        "translations": {code: each.getId() for code, each in translations.items()} == {"en": "hello", "de": "hallo"},
        "comments": [comment.text for comment in IConversation(page).getComments()] == ["A remark"],
        "redirects": getUtility(IRedirectionStorage).get(f"{path}/en/old-name") == f"{path}/en/new-name",
    }
    [copy] = [obj for obj in folder.objectValues() if obj.title == "Worked on"]
    ICheckinCheckoutPolicy(copy).checkin("done")
    found = folder.portal_catalog(Title='"Worked on"')
    is_there["working copy"] = folder["original"].title == "Worked on" and len(found) == 1
    transaction.abort()
    return [name for name, is_found in is_there.items() if not is_found]
