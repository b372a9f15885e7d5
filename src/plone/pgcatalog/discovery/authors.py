"""Who may know who has written what: Plone's rule for by-lines, which holds for counts of authors as well."""

from collections.abc import Iterable
from plone.registry.interfaces import IRegistry
from typing import Any
from zope.component import getMultiAdapter
from zope.component import getUtility


#: The index of the names that users log in with.
AUTHORS = "Creator"


def may_know_authors(context: Any, request: Any) -> bool:
    """Return whether the user is told authors and dates: not without a log-in, unless the site shows them to everybody."""
    state = getMultiAdapter((context, request), name="plone_portal_state")
    return not state.anonymous() or bool(getUtility(IRegistry).get("plone.allow_anon_views_about"))


def told_facets(names: Iterable[str], context: Any, request: Any) -> list[str]:
    """Return those of the indexes *names* whose values the user may be told."""
    names = list(names)
    if AUTHORS in names and not may_know_authors(context, request):
        return [name for name in names if name != AUTHORS]
    return names
