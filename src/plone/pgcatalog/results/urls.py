"""URLs of many paths: that of a folder is found out once for all brains in it, and for all requests to the same server."""

from collections.abc import Hashable
from typing import Any
from ZPublisher.BaseRequest import quote
from ZPublisher.HTTPRequest import HTTPRequest
from ZPublisher.HTTPRequest import WSGIRequest

import re


#: Names that no quoting changes.
_PLAIN = re.compile("[A-Za-z0-9_.-]+")
#: Requests whose URLs depend on nothing else than what is compared here: those of a server, and of scripts.
_REQUESTS = (WSGIRequest, HTTPRequest)
#: The virtual root of a request that has none.
_NO_ROOT = ("",)
#: Folders whose URLs are remembered, of all contexts together, and contexts (any host that somebody asks for is one).
SIZE = 10_000
CONTEXTS = 100

#: What the URLs of a request depend on, and whether they are relative to its server -> folder -> URL.
_contexts: dict[Hashable, dict[str, str]] = {}


def contexts() -> int:
    """Return how many kinds of requests, each with the URLs of its folders, are remembered."""
    return len(_contexts)


class URLs:
    """Answers for ``request.physicalPathToURL``, and remembers the URLs of folders."""

    def __init__(self) -> None:
        #: the request that is asked, None for one of another kind, and what its URLs depend on
        self._request: Any = None
        self._server: Any = None
        self._script: list[str] = []
        self._root: Any = _NO_ROOT
        self._absolute: dict[str, str] = {}
        self._relative: dict[str, str] = {}

    def url(self, request: Any, path: str, relative: Any = 0) -> str:
        """Return what ``request.physicalPathToURL(path, relative)`` returns."""
        # For each brain of a page: nothing is called that need not be.
        if (
            request is not self._request
            or request.other.get("SERVER_URL") != self._server
            or request._script != self._script
            or request.other.get("VirtualRootPhysicalPath", _NO_ROOT) != self._root
        ):
            self._begin(request)
        folder, slash, name = path.rpartition("/")
        known = (self._relative if relative else self._absolute).get(folder) if slash else None
        if known is None:
            return self._of_new_folder(request, path, relative)
        return f"{known}/{name}" if _PLAIN.fullmatch(name) else f"{known}/{quote(name)}"

    def _begin(self, request: Any) -> None:
        """Take up the URLs that are known of a request like this one."""
        self._request = None
        self._absolute, self._relative = {}, {}
        if type(request) not in _REQUESTS:
            return
        self._request = request
        self._server = request.other.get("SERVER_URL")
        self._script = list(request._script)
        self._root = request.other.get("VirtualRootPhysicalPath", _NO_ROOT)
        if len(_contexts) > CONTEXTS or sum(map(len, list(_contexts.values()))) > SIZE:
            _contexts.clear()
        context = (self._server, tuple(self._script), tuple(self._root))
        self._absolute, self._relative = (_contexts.setdefault((*context, relative), {}) for relative in (False, True))

    def _of_new_folder(self, request: Any, path: str, relative: Any) -> str:
        """Return the URL of *path*; remember that of its folder, if it lies in the virtual root."""
        folder, slash, name = path.rpartition("/")
        if self._request is None or not slash or folder.count("/") + 1 < len(self._root):
            url: str = request.physicalPathToURL(path, relative)
            return url
        known = self.url(request, folder, relative)
        (self._relative if relative else self._absolute)[folder] = known
        return f"{known}/{quote(name)}"
