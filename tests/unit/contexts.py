"""Contexts of searches with different hits or ranks, and indexes to search in."""

from plone.pgcatalog.fulltext.site import SiteTuning
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.fulltext.tuning import tuning_in
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.query.nearest import Question
from tests.unit.compiling import text_index
from tests.unit.compiling import TRANSLATORS
from typing import Any


NAME = "SearchableText"
QUERY: dict[str, Any] = {NAME: "rain AND w*d", "portal_type": "Document"}
WORDS = tuning_in({"synonyms": "rain, drizzle", "pins": "rain = /page"})
assert WORDS is not None
TUNING = SiteTuning(WORDS, "/plone", lambda: None)
#: Settings of contexts; each changes hits or ranks.
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "globs": {"globs": {NAME: {"w*d": ("wood", "weed")}}},
    "word parts": {"word_parts": {"rain": ("raincoat", "train")}},
    "question": {"question": Question('"chunks"', Fragment("%s::halfvec", ("[0.6,0.8]",)), "<#>", 0.8)},
    "tuning": {"tuning": TUNING},
}


def indexes(text: type[ZCTextIndexTranslator] = ZCTextIndexTranslator, **more: IndexTranslator) -> dict[str, Any]:
    translator = text(text_index(NAME), "searchable_text")
    translator.relate(TRANSLATORS.__getitem__)
    return {**TRANSLATORS, NAME: translator, **more}
