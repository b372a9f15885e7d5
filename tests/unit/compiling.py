"""A stub catalog: translators of a few indexes, and queries compiled for them, as text."""

from collections.abc import Sequence
from plone.folder.nogopip import GopipIndex
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.date import DateIndexTranslator
from plone.pgcatalog.indexes.path import ExtendedPathIndexTranslator
from plone.pgcatalog.indexes.simple import FieldIndexTranslator
from plone.pgcatalog.indexes.simple import GopipIndexTranslator
from plone.pgcatalog.indexes.simple import KeywordIndexTranslator
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.sql.expression import Fragment
from Products.CMFPlone.UnicodeSplitter import I18NNormalizer
from Products.CMFPlone.UnicodeSplitter import Splitter as UnicodeSplitter
from Products.ExtendedPathIndex.ExtendedPathIndex import ExtendedPathIndex
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.ZCTextIndex.OkapiIndex import OkapiIndex
from Products.ZCTextIndex.ZCTextIndex import PLexicon
from Products.ZCTextIndex.ZCTextIndex import ZCTextIndex
from types import SimpleNamespace
from typing import Any


def text_index(name: str) -> Any:
    """Return a ZCTextIndex with a lexicon as Plone has it."""
    caller = SimpleNamespace(lexicon=PLexicon("lexicon", "", UnicodeSplitter(), I18NNormalizer()))
    return ZCTextIndex(name, caller=caller, index_factory=OkapiIndex, lexicon_id="lexicon")


TRANSLATORS: dict[str, IndexTranslator] = {
    # In this order, which is the catalog's.
    "Title": ZCTextIndexTranslator(text_index("Title"), "title"),
    "portal_type": FieldIndexTranslator(FieldIndex("portal_type"), "portal_type"),
    "Creator": FieldIndexTranslator(FieldIndex("Creator"), "creator"),
    "Subject": KeywordIndexTranslator(KeywordIndex("Subject"), "subject"),
    "created": DateIndexTranslator(DateIndex("created"), "created"),
    "path": ExtendedPathIndexTranslator(ExtendedPathIndex("path"), "path"),
    "getObjPositionInParent": GopipIndexTranslator(
        GopipIndex("getObjPositionInParent", caller=SimpleNamespace(_catalog=None)), "position"
    ),
}


def compiled(query: dict[str, Any], *sort: tuple[str, bool], limit: Any = None) -> CompiledQuery:
    """Return *query* compiled, sorted by the (index, reverse) pairs *sort*."""
    return compile_query(query, SearchContext(TRANSLATORS), sort, limit)


def rendered(condition: Fragment | None) -> tuple[str, list[Any]]:
    """Return *condition*, or a score, as the SQL text and the parameters sent to PostgreSQL; ("", []) for None."""
    return ("", []) if condition is None else (condition.sql, list(condition.params))


def order(compiled: CompiledQuery) -> Sequence[str]:
    """Return the SQL expressions by which PostgreSQL sorts the rows of *compiled*."""
    return [term.sql for term in compiled.order]
