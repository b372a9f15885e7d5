"""The registry of translators, by index type."""

from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.date import DateIndexTranslator
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from plone.pgcatalog.indexes.daterange import DateRangeInRangeIndexTranslator
from plone.pgcatalog.indexes.path import ExtendedPathIndexTranslator
from plone.pgcatalog.indexes.path import PathIndexTranslator
from plone.pgcatalog.indexes.recurring import DateRecurringIndexTranslator
from plone.pgcatalog.indexes.simple import BooleanIndexTranslator
from plone.pgcatalog.indexes.simple import CompositeIndexTranslator
from plone.pgcatalog.indexes.simple import FieldIndexTranslator
from plone.pgcatalog.indexes.simple import GopipIndexTranslator
from plone.pgcatalog.indexes.simple import KeywordIndexTranslator
from plone.pgcatalog.indexes.simple import TopicIndexTranslator
from plone.pgcatalog.indexes.simple import UUIDIndexTranslator
from plone.pgcatalog.interfaces import IPGIndexTranslator
from typing import Any
from zope.component import queryUtility


#: ``meta_type`` -> translator.  ``core.configuration`` adds the text index; every process with a catalog imports it.
BUILT_IN: dict[str, type[IndexTranslator]] = {
    cls.meta_type: cls
    for cls in (
        BooleanIndexTranslator,
        CompositeIndexTranslator,
        DateIndexTranslator,
        DateRangeIndexTranslator,
        DateRangeInRangeIndexTranslator,
        DateRecurringIndexTranslator,
        ExtendedPathIndexTranslator,
        FieldIndexTranslator,
        GopipIndexTranslator,
        KeywordIndexTranslator,
        PathIndexTranslator,
        TopicIndexTranslator,
        UUIDIndexTranslator,
    )
}


def translator_class(meta_type: str) -> type[IndexTranslator] | None:
    """Return the translator class for *meta_type*, None for an unknown index type.

    A utility that provides IPGIndexTranslator, named like the meta_type, adds a translator or replaces a built-in one.
    """
    utility: type[IndexTranslator] | None = queryUtility(IPGIndexTranslator, name=meta_type)
    return utility or BUILT_IN.get(meta_type)


def settings_of(index: Any) -> Any:
    """Return a copy of *index*, of any type, with its settings only."""
    return (translator_class(index.meta_type) or IndexTranslator).settings(index)
