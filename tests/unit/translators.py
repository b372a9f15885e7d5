"""A translator of each type of index, all of the index ``x``."""

from plone.folder.nogopip import GopipIndex
from plone.pgcatalog.indexes import simple
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.date import DateIndexTranslator
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from plone.pgcatalog.indexes.path import ExtendedPathIndexTranslator
from plone.pgcatalog.indexes.path import PathIndexTranslator
from plone.pgcatalog.indexes.recurring import DateRecurringIndexTranslator
from Products.DateRecurringIndex.index import DateRecurringIndex
from Products.ExtendedPathIndex.ExtendedPathIndex import ExtendedPathIndex
from Products.PluginIndexes.BooleanIndex.BooleanIndex import BooleanIndex
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.PluginIndexes.PathIndex.PathIndex import PathIndex
from Products.PluginIndexes.UUIDIndex.UUIDIndex import UUIDIndex
from types import SimpleNamespace


RECURRING = SimpleNamespace(recurdef="recurrence", until="until")
TRANSLATORS: dict[str, IndexTranslator] = {
    "field": simple.FieldIndexTranslator(FieldIndex("x"), "x"),
    "uuid": simple.UUIDIndexTranslator(UUIDIndex("x"), "x"),
    "keyword": simple.KeywordIndexTranslator(KeywordIndex("x"), "x"),
    "boolean": simple.BooleanIndexTranslator(BooleanIndex("x"), "x"),
    "gopip": simple.GopipIndexTranslator(GopipIndex("x", caller=SimpleNamespace(_catalog=None)), "x"),
    "date": DateIndexTranslator(DateIndex("x"), "x"),
    "range": DateRangeIndexTranslator(DateRangeIndex("x", "since", "until"), "x"),
    "recurring": DateRecurringIndexTranslator(DateRecurringIndex("x", extra=RECURRING), "x"),
    "path": ExtendedPathIndexTranslator(ExtendedPathIndex("x"), "x"),
    "plain path": PathIndexTranslator(PathIndex("x"), "x"),
}
