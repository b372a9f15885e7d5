"""The parameters of a request, converted to a search."""

from base64 import b64decode
from collections.abc import Container
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.discovery.facet_groups import may_sort_by
from plone.pgcatalog.discovery.suggest import did_you_mean
from plone.pgcatalog.fulltext.typed import with_exclusions
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.query.nearest import AS_SITE
from plone.pgcatalog.query.nearest import HYBRID
from plone.pgcatalog.query.nearest import RANK
from plone.pgcatalog.query.nearest import WORDS
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Path
from plone.pgcatalog.request import number_in
from plone.pgcatalog.request import without_addresses
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.restapi.exceptions import QueryParsingError
from plone.restapi.interfaces import IIndexQueryParser
from plone.restapi.interfaces import IZCatalogCompatibleQuery
from plone.restapi.search.utils import unflatten_dotted_dict
from Products.CMFCore.utils import getToolByName
from typing import Any
from zExceptions import BadRequest
from zope.component import getMultiAdapter
from zope.component import queryMultiAdapter
from zope.component.hooks import getSite
from zope.interface.interfaces import ComponentLookupError

import json


#: Default and maximum number of rows of a page.
ROWS, MAX_ROWS = 10, 200
#: Maximum number of passages in a response.
MAX_PASSAGES = 20
#: Default number of values of a facet, and the number if more are requested.
FACET_VALUES, MORE_FACET_VALUES = 6, 100
#: Parameters that are not queries of an index, even if an index has that name.
OPTIONS = {
    *("b_size", "b_start", "count_limit", "collate", "cursor", "expand", "facet_conditions", "facet_limit"),
    *("facet_ranges", "facets", "fullobjects", "is_multilingual", "lang", "metadata_fields", "mode"),
    *("passages", "path_prefix"),
    *("q", "rows", "snippet_length", "snippets", "sort", "sort_limit", "sort_on"),
    *("sites", "sort_order", "spellcheck", "start"),
    WHERE,
}
TRUE_TEXTS = ("1", "true", "yes", "on")


@contextmanager
def parsing() -> Iterator[None]:
    """Turn errors of plone.restapi and of the catalog about a visitor's values into BadRequest."""
    try:
        with bad_values():
            yield
    except QueryParsingError as error:
        raise BadRequest(without_addresses(str(error))) from error
    except ComponentLookupError as error:
        raise BadRequest("plone.restapi does not support values of this type of index") from error


def json_in(text: str, is_base64: bool = False) -> Any:
    """Return the data of *text*, JSON; raises ValueError for other texts, and for JSON that is nested too deeply."""
    try:
        return json.loads(b64decode(text, validate=True) if is_base64 else text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def buckets(ranges: Any) -> dict[str, dict[str, tuple[Any, Any]]]:
    """Return ``{index: {label: [from, up to]}}`` with tuples instead of lists; raises ValueError for other data."""
    try:
        return {index: {label: (low, high) for label, (low, high) in of.items()} for index, of in ranges.items()}
    except (TypeError, AttributeError) as error:
        raise ValueError("no ranges") from error


class Parameters:
    """The form of *request*, a search in *context*; raises BadRequest for invalid parameters."""

    def __init__(self, context: Any, request: Any) -> None:
        self.context = context
        self.request = request
        self.catalog = getToolByName(context, "portal_catalog")
        self.form: Mapping[str, Any] = request.form
        self.start = self._number("start", 0)
        self.rows = self._number("rows", ROWS, MAX_ROWS)
        self.snippet_length = self._number("snippet_length", 200, 2000)
        self.count_limit = self._number("count_limit", 0)
        self.text = self._text("q").strip()
        self.cursor = self._text("cursor") if "cursor" in self.form else None
        if self.cursor is not None and self.start:
            raise BadRequest("use either a cursor or start")
        self.passages = self._number("passages", 0, MAX_PASSAGES)
        self.mode = self._text("mode", HYBRID if self.passages else WORDS) or WORDS
        if self.mode not in (WORDS, HYBRID):
            raise BadRequest(f"mode must be {WORDS} or {HYBRID}, not {self.mode[:50]!r}")
        self.conditions = self._facet_conditions()
        self.facets = self.names("facets")
        self.ranges = self._ranges()

    # -- single values

    def _text(self, name: str, default: str = "") -> str:
        value = self.form.get(name, default)
        if not isinstance(value, str):
            raise BadRequest(f"{name} must be a single text")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Return the parameter *name* as a bool."""
        text = self._text(name)
        return text.lower() in TRUE_TEXTS if text else default

    def _number(self, name: str, default: int, most: int = 2**31) -> int:
        text = self._text(name, str(default))
        number = number_in(text)
        if number is None or not 0 <= number <= most:
            raise BadRequest(f"{name} must be a number from 0 to {most}, not {text[:50]!r}")
        return number

    def names(self, name: str) -> list[str]:
        """Return a list that was sent as repeated parameters, or as one with commas."""
        value = self.form.get(name, [])
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise BadRequest(f"{name} must be a list of names")
        return [part.strip() for part in parts if part.strip()]

    # -- facets

    def _facet_conditions(self) -> dict[str, dict[str, Any]]:
        """Return {index: {"c": {value: is chosen}, "p": part of values, "m": wants more}}, sent as base64 of JSON."""
        raw = self._text("facet_conditions")
        if not raw:
            return {}
        try:
            conditions = json_in(raw, is_base64=True)
        except ValueError as error:
            raise BadRequest("facet_conditions is not JSON in base64") from error
        if not isinstance(conditions, dict) or not all(
            isinstance(c, dict) and isinstance(c.get("c", {}), dict) and isinstance(c.get("p", ""), str)
            for c in conditions.values()
        ):
            raise BadRequest('facet_conditions must be {index: {"c": {value: true}, "p": text, "m": true}}')
        return conditions

    def chosen(self, index: str) -> list[str]:
        """Return the chosen values of the facet *index*."""
        return [value for value, on in self.conditions.get(index, {}).get("c", {}).items() if on]

    def facet_limit(self, index: str) -> int:
        """Return the maximum number of values of the facet *index*."""
        if "facet_limit" in self.form:
            return self._number("facet_limit", FACET_VALUES, 1000)
        return MORE_FACET_VALUES if self.conditions.get(index, {}).get("m") else FACET_VALUES

    def _ranges(self) -> dict[str, dict[str, tuple[Any, Any]]]:
        raw = self._text("facet_ranges")
        try:
            return buckets(json_in(raw) if raw else {})
        except (ValueError, TypeError) as error:
            raise BadRequest("facet_ranges must be JSON: {index: {label: [from, up to]}}") from error

    # -- the query

    def search(self, query: dict[str, Any], start: int, size: int | None) -> Any:
        """Return *size* hits of *query* from *start*, or all without *size*.  Raises BadRequest for invalid values."""
        window = {} if size is None else {"b_start": start, "b_size": size}
        with bad_values():
            return self.catalog.searchResults(**query, **window)

    @property
    def place(self) -> dict[str, Any]:
        """The query without its text: the filter of the rows whose words are candidates for a correction."""
        return {name: value for name, value in self.query().items() if name != SOURCE_INDEX}

    def corrected_text(self) -> str | None:
        """Return the correction of the text, None if there is none."""
        return did_you_mean(self.catalog, self.text, self.place)

    def query(self) -> dict[str, Any]:
        """Return the query dict, without a window."""
        indexes = set(self.catalog.indexes())
        named = {k: v for k, v in unflatten_dotted_dict(dict(self.form)).items() if k in indexes and k not in OPTIONS}
        query = self._parsed(named)
        more: list[Expression] = self._place(query)
        for index in self.conditions:
            if index not in indexes:
                raise BadRequest(f"there is no index {index!r}")
            if values := self.chosen(index):
                # The criterion of a facet replaces the index's own one, which still holds for all facets.
                if index in query:
                    more.append(And({index: query[index]}))
                query |= self._parsed({index: {"query": values}})
        of_text = self._of_text(indexes)
        if SOURCE_INDEX in of_text and self.mode == HYBRID and RANK not in indexes:
            of_text[RANK] = HYBRID
        query |= of_text
        if more:
            query[WHERE] = And(*more)
        return query | self._sort()

    def _of_text(self, indexes: Container[str]) -> dict[str, Any]:
        """Return the criteria for the text and its language; *indexes* are the names of the catalog's indexes."""
        query: dict[str, Any] = {} if AS_SITE in indexes else {AS_SITE: True}
        if self.text and self.text != "*":
            query[SOURCE_INDEX] = with_exclusions(self.text)
        if self._text("lang") and "Language" in indexes:
            query["Language"] = self._text("lang")
        return query

    def _parsed(self, query: dict[str, Any]) -> dict[str, Any]:
        """Return *query*, whose values are strings, with the types that its indexes expect."""
        context = self.context, self.request
        translators = {name: self.catalog._core.translator(name) for name in query}
        # Indexes whose values plone.restapi cannot parse get the strings unchanged.
        unparsed = {
            name: query[name]
            for name, translator in translators.items()
            if queryMultiAdapter((translator.index, *context), IIndexQueryParser) is None
        }
        parsed: dict[str, Any] = {name: value for name, value in query.items() if name not in unparsed}
        with parsing():
            parsed = getMultiAdapter(context, IZCatalogCompatibleQuery)(parsed)
            for name in unparsed:
                if translators[name].where(unparsed) is None:
                    raise BadRequest(f"index {name!r} of type {translators[name].meta_type} cannot be searched")
        return parsed | unparsed

    def _place(self, query: dict[str, Any]) -> list[Expression]:
        """Restrict *query* to the context, or to ``path_prefix`` in the site; return further expressions."""
        if "path" in query:
            return []
        prefix = self._text("path_prefix")
        if not prefix:
            query["path"] = "/".join(self.context.getPhysicalPath())
            return []
        path = "/".join(getSite().getPhysicalPath()) + "/" + prefix.strip("/")
        query["path"] = path.rstrip("/")
        # With a slash at its end, the folder itself is left out.
        return [Not(Path(query["path"], depth=0))] if prefix.endswith("/") else []

    def _sort(self) -> dict[str, Any]:
        sort_on, sort_order = self._text("sort_on"), self._text("sort_order")
        if sort := self._text("sort"):
            sort_on, _, direction = sort.strip().partition(" ")
            sort_order = "descending" if direction.strip().lower() == "desc" else "ascending"
        if sort_on in ("", "score", "relevance"):
            return {}
        if not may_sort_by(sort_on, self.context, self.request):
            raise BadRequest(f"results cannot be sorted by {sort_on!r}")
        return {"sort_on": sort_on, "sort_order": sort_order or "ascending"}
