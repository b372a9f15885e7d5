"""Compiled queries from the cache, as a whole or by the parts of their indexes."""

from benchmarks import compiling
from collections.abc import Mapping
from DateTime import DateTime
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.simple import FieldIndexTranslator
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.compiler import CompiledQueries
from plone.pgcatalog.query.compiler import MOST_COMPILED
from plone.pgcatalog.query.objects import Eq
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from tests.unit.compiling import TRANSLATORS
from tests.unit.contexts import indexes
from tests.unit.contexts import NAME
from tests.unit.contexts import QUERY
from tests.unit.contexts import SETTINGS
from typing import Any

import pytest


FILTERS: dict[str, Any] = {"portal_type": ["Document", "Event"], "Subject": ["water", "wood"], "path": "/plone/news"}


def memory(translators: Mapping[str, IndexTranslator] = TRANSLATORS) -> CompiledQueries:
    lexicons = {n: t.index.getLexicon() for n, t in translators.items() if t.has_ranking}
    return CompiledQueries(translators, lexicons)


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


@pytest.mark.parametrize(
    ("name", "kept"), [("plain", True), ("word parts", False), ("question", False), ("tuning", False)]
)
def test_compiled_query_with_other_words_is_not_cached(name: str, kept: bool) -> None:
    searched = indexes()
    context, compiled = SearchContext(searched, **SETTINGS[name]), memory(searched)
    one, other = (compiled.find_or_compile(QUERY, context, [], None) for _ in range(2))
    assert (one is other) == kept


def test_query_object_is_compiled_each_time() -> None:
    compiled, query = memory(), {"where": Eq("portal_type", "Document")}
    one, other = (compiled.find_or_compile(query, SearchContext(TRANSLATORS), [], None) for _ in range(2))
    assert one is not other


def test_equal_filters_with_other_words_are_compiled_once(asked: list[str]) -> None:
    searched = indexes()
    compiled = memory(searched)
    for words in ("rain", "snow", "wind"):
        compiled.find_or_compile({**FILTERS, NAME: words}, SearchContext(searched), [], None)
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
    searched = indexes()
    compiled = memory(searched)
    for settings in (*SETTINGS.values(), *SETTINGS.values()):
        for query in (*QUERIES, *reversed(QUERIES)):
            for sort in ([], [("created", True)]):
                found = compiled.find_or_compile(query, SearchContext(searched, **settings), sort, None)
                assert found.key == compile_query(query, SearchContext(indexes(), **settings), sort).key


def test_bad_values_are_refused_each_time() -> None:
    compiled = memory()
    for _ in range(2):
        with pytest.raises(TypeError):
            compiled.find_or_compile({**FILTERS, "Subject": [["water"]]}, SearchContext(TRANSLATORS), [], None)


def test_name_that_is_no_string_is_refused_each_time() -> None:
    compiled = memory()
    compiled.find_or_compile(FILTERS, SearchContext(TRANSLATORS), [], None)
    with pytest.raises(AttributeError):
        compiled.find_or_compile({**FILTERS, ("a",): 1}, SearchContext(TRANSLATORS), [], None)


class LanguageTranslator(FieldIndexTranslator):
    """An index type of an add-on whose condition depends on another part of the query."""

    meta_type = "LanguageIndex"

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        return Condition("language = %s", (query["language"],))


def test_condition_of_an_add_on_may_depend_on_the_whole_query() -> None:
    searched = indexes(words=LanguageTranslator(FieldIndex("words"), "words"))
    compiled = memory(searched)
    for language in ("de", "en"):
        query = compiled.find_or_compile({"words": "x", "language": language}, SearchContext(searched), [], None)
        assert query.where.params == (language,)


def test_cache_is_bounded() -> None:
    compiled = memory()
    for number in range(MOST_COMPILED + 10):
        compiled.find_or_compile({"Creator": f"c{number}"}, SearchContext(TRANSLATORS), [], None)
    assert len(compiled._memory) == MOST_COMPILED


def test_the_benchmark_prints_a_line_for_each_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "ROUNDS", 1)
    monkeypatch.setattr(compiling, "SEARCHES", 2)
    compiling.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == ["none", *(n for n in compiling.FILTERS if n != "b_size")]
