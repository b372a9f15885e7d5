"""Input of ``@solr``: the search tabs in the site's settings, and the parameters of a request as queries."""

from collections.abc import Callable
from collections.abc import Iterator
from copy import deepcopy
from functools import cached_property
from plone.pgcatalog.i18n import _
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import In
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.query.objects import Path
from plone.pgcatalog.query.objects import Range
from plone.pgcatalog.restapi.parameters import json_in
from plone.pgcatalog.restapi.parameters import Parameters
from plone.registry.interfaces import IRegistry
from plone.schema import JSONField
from typing import Any
from zExceptions import BadRequest
from zope.component import getUtility
from zope.component.hooks import getSite
from zope.interface import Interface

import json


RECORD = "plone.pgcatalog.solr"
_NAMED = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}
_TAB = {
    "type": "object",
    "additionalProperties": False,
    "required": ["label"],
    "properties": {
        "label": {"type": "string", "minLength": 1},
        "query": {"type": "object"},
        "facetFields": {"type": "array", "items": _NAMED},
        "layouts": {"type": "array", "items": {"type": "string"}},
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "searchTabs": {"type": "array", "items": _TAB},
        "fieldList": {"type": "array", "items": {"type": "string"}},
        "vocabularies": {
            "type": "array",
            "items": {"type": "object", "required": ["field", "name"]},
        },
    },
}
#: The default tabs; their labels are translated by the front-end.
DEFAULT: dict[str, Any] = {
    "searchTabs": [
        {"label": "All", "query": {}},
        {"label": "Pages", "query": {"portal_type": ["Document"]}},
        {"label": "Events", "query": {"portal_type": ["Event"]}},
        {"label": "Images", "query": {"portal_type": ["Image"]}},
        {"label": "Files", "query": {"portal_type": ["File"]}},
    ]
}


class ISolrSettings(Interface):
    """The settings of ``@solr``."""

    solr = JSONField(
        title=_("Search tabs of a Solr front-end"),
        description=_(
            "Tabs, facets, layouts and further fields of the service @solr; see the reference of REST services."
        ),
        schema=json.dumps(SCHEMA),
        required=False,
        default=DEFAULT,
    )


#: Operator of a range of dates -> (which end, whether the end belongs to the range).
ENDS = {"ge": ("min", True), "gr": ("min", False), "le": ("max", True), "ls": ("max", False)}


class WithExtraConditions(Parameters):
    """The parameters of a search, and ``extra_conditions``."""

    @cached_property
    def indexes(self) -> set[str]:
        """The names of the catalog's indexes."""
        return set(self.catalog.indexes())

    def query(self) -> dict[str, Any]:
        query = super().query()
        return self._joined(query, list(self._extra_conditions()))

    def _joined(self, query: dict[str, Any], more: list[Expression]) -> dict[str, Any]:
        held = [query[WHERE]] if WHERE in query else []
        return query | ({WHERE: And(*held, *more)} if more else {})

    def _check(self, index: Any) -> None:
        if not isinstance(index, str) or index not in self.indexes:
            raise BadRequest(f"there is no index {index!r}")

    def _extra_conditions(self) -> Iterator[Expression]:
        """Yield filters: ``[index, "date-range", {"ge" or "gr", "le" or "ls"}]``, ``[index, "string", {"in": [value]}]``."""
        raw = self._text("extra_conditions")
        try:
            conditions = json_in(raw, is_base64=True) if raw else []
            if not isinstance(conditions, list):
                raise ValueError("not a list")
            for index, kind, condition in conditions:
                self._check(index)
                kinds: dict[str, Callable[..., Iterator[Expression]]] = {
                    "date-range": self._range,
                    "string": self._strings,
                }
                yield from kinds[kind](index, condition)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadRequest("extra_conditions must be JSON in base64: [[index, kind, options]]") from error

    def _range(self, index: str, condition: dict[str, str]) -> Iterator[Expression]:
        ends = {ENDS[word][0]: value for word, value in condition.items()}
        if len(ends) != len(condition) or not all(isinstance(value, str) for value in ends.values()):
            raise ValueError("a bound is given twice, or is not text")
        if ends:
            yield Range(index, **ends)
        yield from (Not(Eq(index, value)) for word, value in condition.items() if not ENDS[word][1])

    def _strings(self, index: str, condition: dict[str, list[str]]) -> Iterator[Expression]:
        values = condition.pop("in", [])
        if condition or not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError("not a list of texts")
        if values:
            yield In(index, values)


class SolrParameters(WithExtraConditions):
    """The parameters of kitconcept.solr's front-end; raises BadRequest for invalid ones."""

    def __init__(self, context: Any, request: Any) -> None:
        super().__init__(context, request)
        record = getUtility(IRegistry).get(RECORD)
        self.settings = deepcopy(DEFAULT if record is None else record)
        self.tabs: list[dict[str, Any]] = self.settings.get("searchTabs", [])
        lang = self._text("lang")
        self.is_multilingual = self.flag("is_multilingual", not lang)
        if lang and self.is_multilingual:
            raise BadRequest("lang and is_multilingual exclude each other")
        self.group = self._number("group_select", 0)
        if self.group and self.group >= len(self.tabs):
            raise BadRequest(f"group_select must be the number of a search tab, from 0 to {len(self.tabs) - 1}")
        self.tab = self.tabs[self.group] if self.tabs else {}
        self.facets = [field["name"] for field in self.tab.get("facetFields", [])]
        for name in (*self.conditions, *self.facets):
            self._check(name)

    # -- queries

    def query(self) -> dict[str, Any]:
        """Return the query dict of the page, without a window."""
        query, more = self._base()
        query |= self._parsed({index: {"query": values} for index in self.conditions if (values := self.chosen(index))})
        return self._joined(query, [*more, *self._of_tab(self.tab)]) | self._sort()

    def tab_query(self, tab: dict[str, Any]) -> dict[str, Any]:
        """Return the query dict of all hits of *tab*, without the values chosen in facets."""
        query, more = self._base()
        return self._joined(query, [*more, *self._of_tab(tab)])

    def _of_tab(self, tab: dict[str, Any]) -> Iterator[Expression]:
        for index, criterion in tab.get("query", {}).items():
            self._check(index)
            yield And(self._parsed({index: criterion}))

    def _base(self) -> tuple[dict[str, Any], list[Expression]]:
        """Return the query common to all tabs: a query dict, and expressions that a dict cannot contain."""
        return self._of_text(self.indexes), [*self._places(), *self._types(), *self._extra_conditions()]

    def _types(self) -> Iterator[Expression]:
        """Yield the filter by type; a type is given by its name or by its title."""
        if types := self.names("portal_type"):
            yield Or(*(In(index, types) for index in ("portal_type", "Type") if index in self.indexes))

    # -- places

    def _places(self) -> Iterator[Expression]:
        """Yield filters for the context, or for ``path_prefix`` in the site, and for its translations."""
        site = "/".join(getSite().getPhysicalPath())
        prefix = self._text("path_prefix")
        folder = f"{site}/{prefix.strip('/')}".rstrip("/") if prefix else "/".join(self.context.getPhysicalPath())
        if folder == site:
            return
        folders = self._translations(folder) if self.is_multilingual else [folder]
        yield Or(*(Path(path) for path in folders))
        if prefix.endswith("/"):
            yield from (Not(Path(path, depth=0)) for path in folders)

    def _translations(self, folder: str) -> list[str]:
        """Return the path *folder*, and the paths of its translations that the user may see."""
        if "TranslationGroup" not in self.indexes:
            return [folder]
        groups = [brain.TranslationGroup for brain in self.catalog.searchResults(path={"query": folder, "depth": 0})]
        paths = [b.getPath() for b in self.catalog.searchResults(TranslationGroup=groups)] if any(groups) else []
        return list(dict.fromkeys([folder, *paths]))
