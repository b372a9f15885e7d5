"""The behavior *Search*: a checkbox with which editors leave a page out of the searches of visitors.

The mark is stored in the index ``object_provides``, which every site has: the catalog needs no further index.
"""

from Acquisition import aq_base
from plone.autoform.interfaces import IFormFieldProvider
from plone.indexer import indexer
from plone.pgcatalog.controlpanel.registry_records import copy_settings
from plone.pgcatalog.i18n import _
from plone.pgcatalog.interfaces import INotInSearch
from plone.supermodel import model
from Products.CMFPlone.CatalogTool import object_provides as plones_object_provides
from typing import Any
from zope import schema
from zope.component.hooks import getSite
from zope.interface import provider


@provider(IFormFieldProvider)
class ISearchBehavior(model.Schema):
    """The fields of the behavior; a page with the behavior provides it."""

    model.fieldset("settings", fields=["not_in_search"])

    not_in_search = schema.Bool(
        title=_("Not in search results"),
        description=_(
            "The search page, live search and similar pages leave this page out. Listings and navigation still show it."
        ),
        default=False,
        required=False,
    )


@indexer(ISearchBehavior)  # type: ignore[untyped-decorator]
def object_provides(obj: Any) -> list[str]:
    """Return the names of the interfaces of *obj*, with the mark if it is to be left out."""
    names: list[str] = plones_object_provides.callable(obj)
    is_marked = getattr(aq_base(obj), "not_in_search", False) is True
    return [*names, INotInSearch.__identifier__] if is_marked else names


def type_changed(fti: Any, event: Any) -> None:
    """Store in the settings of the site whether a content type has the behavior."""
    if getSite() is not None:
        copy_settings(getSite())
