"""The context of a search: each search has its own, and translators of add-ons can ignore it."""

from collections.abc import Mapping
from plone.pgcatalog.fulltext import tsquery
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Text
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.unit.compiling import rendered
from tests.unit.contexts import indexes
from tests.unit.contexts import NAME
from tests.unit.contexts import QUERY
from tests.unit.contexts import SETTINGS
from typing import Any

import pytest


def answers(context: SearchContext, query: Mapping[str, Any] = QUERY) -> Any:
    """Return all conditions, scores and orders of *query* in *context*."""
    compiled = compile_query(query, context, [])
    return rendered(compiled.where), rendered(compiled.score), compile_query(query, context, [("Creator", False)]).key


def test_each_setting_changes_the_answer() -> None:
    found = [answers(SearchContext(indexes(), **settings)) for settings in SETTINGS.values()]
    assert all(one != other for i, one in enumerate(found) for other in found[:i])


def test_interleaved_searches_have_the_answers_of_their_own_contexts() -> None:
    shared = indexes()
    contexts = {name: SearchContext(shared, **settings) for name, settings in SETTINGS.items()}
    alone = {name: answers(SearchContext(indexes(), **settings)) for name, settings in SETTINGS.items()}
    for _ in range(2):
        assert {name: answers(context) for name, context in contexts.items()} == alone


def test_an_excluded_part_is_compiled_in_a_plain_context() -> None:
    excluded = {"where": Not(Text(QUERY[NAME]))}
    plain = answers(SearchContext(indexes()), excluded)
    for name in ("word parts", "question", "tuning"):
        assert answers(SearchContext(indexes(), **SETTINGS[name]), excluded) == plain


def test_a_search_compiles_its_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    compile_text = tsquery.compile_text

    def counted(lexicon: Any, text: str, *more: Any) -> tsquery.Clause:
        texts.append(text)
        return compile_text(lexicon, text, *more)

    monkeypatch.setattr(tsquery, "compile_text", counted)
    context = SearchContext(indexes(), **SETTINGS["question"])
    assert compile_query(QUERY, context, []).score is not None
    assert texts == [QUERY[NAME]]


# -- translators of add-ons, whose methods take a query alone


class PriceTranslator(IndexTranslator):
    """An index type as an add-on for an earlier release has it."""

    meta_type = "PriceIndex"

    def columns(self) -> Any:
        return ()

    def extract(self, obj: Any, report: Report) -> Values | None:
        return None

    def where(self, query: Mapping[str, Any]) -> Condition | None:  # type: ignore[override]
        return Condition("price = %s", (query["price"],))

    def score(self, query: Mapping[str, Any]) -> Fragment | None:  # type: ignore[override]
        return Fragment("-price")


class LowerText(ZCTextIndexTranslator):
    """Changes the query, and delegates the rest to the text index."""

    def where(self, query: Mapping[str, Any]) -> Condition | None:  # type: ignore[override]
        return super().where({**query, self.id: query[self.id].lower()})


class Priced:
    """A part of a translator that is no translator itself."""

    def where(self, query: Mapping[str, Any]) -> Condition | None:
        return Condition("price > 0")


class Mixed(Priced, PriceTranslator):  # type: ignore[misc]
    """A translator with a method of another class."""


def test_methods_without_a_context_are_called_with_their_query() -> None:
    context = SearchContext(indexes(price=PriceTranslator(FieldIndex("price"), "price")), **SETTINGS["word parts"])
    compiled = compile_query({"price": 7}, context, [])
    assert rendered(compiled.where) == ("price = %s", [7])
    assert rendered(compiled.score) == ("-price", [])
    context = SearchContext(indexes(price=Mixed(FieldIndex("price"), "price")))
    assert rendered(compile_query({"price": 7}, context, []).where) == ("price > 0", [])


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_base_class_of_a_method_without_a_context_applies_it(settings: dict[str, Any]) -> None:
    loud = {**QUERY, NAME: "RAIN AND w*d"}
    assert (
        answers(SearchContext(indexes(LowerText), **settings), loud)[0]
        == answers(SearchContext(indexes(), **settings))[0]
    )


def test_a_method_without_a_context_leaves_its_translator_as_it_was() -> None:
    searched = indexes(LowerText)
    answers(SearchContext(searched, **SETTINGS["word parts"]))
    assert searched[NAME].context is None
    assert searched[NAME].where(QUERY) == indexes()[NAME].where(QUERY)
