"""URLs of many paths in one request: what a folder's URL is, is found out once for all brains in it."""

from typing import Any
from ZPublisher.BaseRequest import quote
from ZPublisher.HTTPRequest import HTTPRequest

import re


#: Names that no quoting changes.
_PLAIN = re.compile("[A-Za-z0-9_.-]+")


class URLs:
    """Answers for ``request.physicalPathToURL``, and remembers the URLs of folders."""

    def __init__(self) -> None:
        self._context: tuple[Any, ...] = ()
        self._folders: dict[tuple[str, bool], str] = {}

    def url(self, request: Any, path: str, relative: Any = 0) -> str:
        """Return what ``request.physicalPathToURL(path, relative)`` returns."""
        folder, slash, name = path.rpartition("/")
        if type(request) is not HTTPRequest or not slash or not self._is_inside(request, folder):
            url: str = request.physicalPathToURL(path, relative)
            return url
        known = self._folders.get((folder, bool(relative)))
        if known is None:
            known = self._folders[folder, bool(relative)] = self.url(request, folder, relative)
        return f"{known}/{name}" if _PLAIN.fullmatch(name) else f"{known}/{quote(name)}"

    def _is_inside(self, request: Any, folder: str) -> bool:
        """Return whether *folder* lies in the virtual root, and forget other requests' URLs."""
        other = request.other
        root = other.get("VirtualRootPhysicalPath", ("",))
        context = (request, other.get("SERVER_URL"), request._script, root)
        if context != self._context:
            self._context = (request, context[1], list(request._script), root)
            self._folders.clear()
        return folder.count("/") + 1 >= len(root)
