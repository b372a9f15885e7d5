"""Announces the UIDs in blocks and texts, which Plone searches for one by one, so that one search reads all rows."""

from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from itertools import islice
from plone.outputfilters.interfaces import IFilter
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.results.announced import MOST
from Products.CMFCore.utils import getToolByName
from typing import Any
from zope.component import adapter
from zope.interface import implementer
from zope.interface import Interface

import re


#: A UID, and a link to its object, as Plone stores them in blocks and texts.
UID = re.compile(r"[\w-]{1,100}")
LINK = re.compile(rf"resolve[Uu]id/({UID.pattern})")
#: Upper limit: parts of JSON data that are searched for links.  Data that contains itself would be endless.
MOST_PARTS = 100_000


def references(value: Any) -> Iterator[str]:
    """Yield the UIDs of the links in *value*, a text or JSON data, in order; read at most MOST_PARTS parts."""
    unread = [value]
    for _ in range(MOST_PARTS):
        if not unread:
            return
        part = unread.pop()
        if isinstance(part, str):
            yield from (link[1] for link in LINK.finditer(part))
        elif isinstance(part, list | tuple):
            unread.extend(reversed(part))
        elif isinstance(part, dict | Mapping):
            unread.extend(reversed(list(part.values())))


def announce(context: Any, source: Hashable, value: Any) -> None:
    """Announce the UIDs of the links in *value*, a text or JSON data of *source*, to the catalog of *context*'s site.

    See ``Catalog.announce``.
    """
    tool = getToolByName(context, "portal_catalog", None)
    if IPGCatalogTool.providedBy(tool):
        tool._core.announce("UID", references(value), source)


def announce_uids(context: Any, uids: Iterable[Any]) -> None:
    """Announce *uids*, values from a request, to the catalog of *context*'s site; ignore values that are no UIDs."""
    texts = (uid for uid in islice(uids, MOST) if isinstance(uid, str) and UID.fullmatch(uid))
    announce(context, None, [f"resolveuid/{uid}" for uid in texts])


@implementer(IFilter)
@adapter(Interface, IPGCatalogLayer)
class TextReferences:
    """Filter that announces the UIDs in a rich text before Plone's own filter resolves them; the text stays unchanged."""

    order = -1000

    def __init__(self, context: Any, request: Any) -> None:
        self.context = context

    def is_enabled(self) -> bool:
        """Return True if the text belongs to an object."""
        return self.context is not None

    def __call__(self, data: str) -> None:
        """Announce the UIDs in *data*."""
        if LINK.search(data):
            announce(self.context, None, data)
