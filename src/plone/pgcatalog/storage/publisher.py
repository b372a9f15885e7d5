"""Makes requests of Zope begin only one snapshot: see ``snapshots``."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from inspect import getsource
from plone.pgcatalog.storage.snapshots import publishing
from typing import Any
from zope.component import getSiteManager
from zope.component.hooks import setSite
from ZPublisher import WSGIPublisher

import logging


logger = logging.getLogger(__name__)

#: Functions of the publisher by which a request opens a connection, begins, ends and closes it -> beginnings of the SHA-256
#: of their known sources.
FUNCTIONS = {
    "load_app": ("0ba860658286",),
    "transaction_pubevents": ("761c8591ad9b",),
    "publish_module": ("5fce512c9800",),
}

_load_app = WSGIPublisher.load_app


def unknown_functions() -> list[str]:
    """Return the names of FUNCTIONS whose source is unknown, as in another Zope or if an add-on replaces them."""
    found = []
    for name, digests in FUNCTIONS.items():
        try:
            function = getattr(WSGIPublisher, name)
            source = getsource(_load_app if function is load_app else function)
        except (AttributeError, OSError, TypeError):
            source = ""
        if not sha256(source.encode()).hexdigest().startswith(digests):
            found.append(name)
    return found


def begin_requests_once() -> None:
    """Replace ``load_app`` of this process's publisher, so that a request begins one snapshot; idempotent.

    An unknown publisher stays as it is: each of its requests begins several snapshots, as without this package.
    """
    if WSGIPublisher.load_app is load_app:
        return
    if names := unknown_functions():
        logger.warning(
            "Each request begins several snapshots, because Zope's publisher has unknown functions: %s",
            ", ".join(names),
        )
        return
    WSGIPublisher.load_app = load_app


@contextmanager
def load_app(module_info: Any) -> Iterator[Any]:
    """Open the application of a request, as the publisher's own function does."""
    try:
        with publishing.request(), _load_app(module_info) as loaded:
            publishing.is_opening = False
            yield loaded
    finally:
        leave_unloaded_site()


def leave_unloaded_site() -> None:
    """Leave the current site if its registry is not in memory, as after a lost connection.

    The publisher looks for subscribers to the end of the request in it, after it has closed the connection.  The error
    replaced the answer; logged while a template's error was handled, it was formatted for minutes: the text of such an error
    loads the template's variables, each of which logged it again.
    """
    registry = getSiteManager()
    if is_unloaded(registry) or is_unloaded(registry.adapters) or is_unloaded(registry.utilities):
        setSite(None)


def is_unloaded(obj: Any) -> bool:
    """Return whether *obj* is persistent, and its state is not in memory."""
    return getattr(obj, "_p_changed", False) is None
