"""The context of a search: each search has its own; add-ons can ignore it; compiled queries are cached for their context."""

from collections.abc import Mapping
from DateTime import DateTime
from plone.pgcatalog.fulltext import tsquery
from plone.pgcatalog.fulltext.site import SiteTuning
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.fulltext.tuning import tuning_in
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.simple import FieldIndexTranslator
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.compiler import CompiledQueries
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import MOST_COMPILED
from plone.pgcatalog.query.nearest import Question
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Text
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.unit.compiling import rendered
from tests.unit.compiling import text_index
from tests.unit.compiling import TRANSLATORS
from typing import Any

import pytest


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


# -- the cache of compiled queries

FILTERS: dict[str, Any] = {"portal_type": ["Document", "Event"], "Subject": ["water", "wood"], "path": "/plone/news"}


class Cache:
    """The compiled queries of a catalog with *translators*."""

    def __init__(self, translators: Mapping[str, IndexTranslator] = TRANSLATORS) -> None:
        lexicons = {n: t.index.getLexicon() for n, t in translators.items() if t.has_ranking}
        self.translators = translators
        self.queries = CompiledQueries(translators, lexicons)

    def compiled(self, query: Mapping[Any, Any], sort: Any = (), **settings: Any) -> CompiledQuery:
        """Return *query*, cached or compiled, for a search with *settings*."""
        return self.queries.find_or_compile(query, SearchContext(self.translators, **settings), sort, None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the indexes whose ``where`` was called."""
    names: list[str] = []
    for cls in {cls for t in TRANSLATORS.values() for cls in type(t).__mro__ if "where" in vars(cls)}:

        def where(self: Any, *args: Any, real: Any = cls.where) -> Any:
            names.append(self.id)
            return real(self, *args)

        monkeypatch.setattr(cls, "where", where)
    return names


@pytest.mark.parametrize("name", ["plain", "word parts", "question", "tuning"])
def test_only_a_query_of_a_plain_search_is_cached(name: str) -> None:
    cache = Cache(indexes())
    one, other = (cache.compiled(QUERY, **SETTINGS[name]) for _ in range(2))
    assert (one is other) == (name == "plain")
    one, other = (cache.compiled({"where": Eq("portal_type", "Document")}) for _ in range(2))
    assert one is not other


def test_equal_filters_with_other_words_are_compiled_once(asked: list[str]) -> None:
    cache = Cache(indexes())
    for words in ("rain", "snow", "wind"):
        cache.compiled({**FILTERS, NAME: words})
    assert sorted(asked) == sorted([*FILTERS, NAME, NAME, NAME])


QUERIES: list[dict[str, Any]] = [
    {},
    FILTERS,
    {"Subject": ["water", "wood"], "Subject_operator": "and"},
    {"Subject": {"query": ["water", "wood"], "operator": "and"}},
    {"Subject": {"query": ["water"], "not": "wood"}},
    {"Subject": "water"},
    {"Creator": ["water"], "Subject": ["water"]},
    {"path": {"query": "/plone/news", "depth": 1}},
    {"path": "/plone/news", "path_depth": 1},
    {"created": DateTime("2020/01/01 UTC")},
    {"created": "2020/01/01"},
    {"created": {"query": DateTime("2020/01/01 UTC"), "range": "min"}},
    {"Title": "rain", "portal_type": "Document"},
    {NAME: "rain", "portal_type": ["Document", "Event"]},
    {NAME: "rain", "portal_type": "Document", "b_size": 5},
]


def test_cached_query_equals_a_newly_compiled_one() -> None:
    cache = Cache(indexes())
    for settings in (*SETTINGS.values(), *SETTINGS.values()):
        for query in (*QUERIES, *reversed(QUERIES)):
            for sort in ([], [("created", True)]):
                found = cache.compiled(query, sort, **settings)
                assert found.key == compile_query(query, SearchContext(indexes(), **settings), sort).key


@pytest.mark.parametrize(("bad", "error"), [({"Subject": [["water"]]}, TypeError), ({("a",): 1}, AttributeError)])
def test_bad_value_or_name_is_refused_each_time(bad: dict[Any, Any], error: type[Exception]) -> None:
    cache = Cache()
    cache.compiled(FILTERS)
    for _ in range(2):
        with pytest.raises(error):
            cache.compiled({**FILTERS, **bad})


class LanguageTranslator(FieldIndexTranslator):
    """An index type of an add-on whose condition depends on another part of the query."""

    meta_type = "LanguageIndex"

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        return Condition("language = %s", (query["language"],))


def test_condition_of_an_add_on_may_depend_on_the_whole_query() -> None:
    cache = Cache(indexes(words=LanguageTranslator(FieldIndex("words"), "words")))
    for language in ("de", "en"):
        assert cache.compiled({"words": "x", "language": language}).where.params == (language,)


def test_cache_is_bounded() -> None:
    cache = Cache()
    for number in range(MOST_COMPILED + 10):
        cache.compiled({"Creator": f"c{number}"})
    assert len(cache.queries._memory) == MOST_COMPILED
