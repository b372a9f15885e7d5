"""Additions to the responses of ``@search`` and ``@querystring-search``, besides the hits.

- *facets*, *facet_ranges*, *facet_limit*: counts, as of ``@pgsearch``
- *snippets*: highlighted matches in the items, and a correction if no item has the words
- *page_facets*: facets of the search page, whose chosen values filter the hits; for ``@querystring-search`` only
- *passages*, *terms*: the number of passages, and of words that complete the last one of the text

Without them the response is that of plone.restapi.
"""

from collections.abc import Container
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from plone.pgcatalog.discovery.facet_groups import visible_facets
from plone.pgcatalog.discovery.facets import LIMIT as FACET_LIMIT
from plone.pgcatalog.discovery.suggest import LIMIT
from plone.pgcatalog.request import number_in
from plone.pgcatalog.restapi.page_facets import MOST_FACETS
from plone.pgcatalog.restapi.parameters import buckets
from plone.pgcatalog.restapi.parameters import json_in
from plone.pgcatalog.restapi.parameters import MAX_PASSAGES
from plone.pgcatalog.restapi.parameters import TRUE_TEXTS
from plone.pgcatalog.searchpage.facets import tokens_in
from typing import Any
from typing import Self
from zExceptions import BadRequest


#: Names of the parameters.
NAMES = ("facets", "facet_ranges", "facet_limit", "snippets", "passages", "terms")
#: Maximum number of values of a facet in a response.
MOST_VALUES = 1000
#: Annotation of a request: a function that returns its Additions.
ADDITIONS_KEY = "plone.pgcatalog.additions"


@dataclass(frozen=True)
class Additions:
    """The additions to a response; *ranges* is {index: {label: (from, up to)}}, *limit* the number of values of a facet."""

    facets: Sequence[str] = ()
    ranges: Mapping[str, Mapping[str, tuple[Any, Any]]] = field(default_factory=dict)
    limit: int = FACET_LIMIT
    has_snippets: bool = False
    passages: int = 0
    terms: int = 0
    #: index -> chosen values
    page_facets: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the additions in *data*, the query of ``@querystring-search``.  Raises BadRequest."""
        names = data.get("facets") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BadRequest("facets must be a list of names of indexes")
        try:
            ranges = buckets(data.get("facet_ranges") or {})
        except ValueError as error:
            raise BadRequest("facet_ranges must be {index: {label: [from, up to]}}") from error
        if not isinstance(has_snippets := data.get("snippets") or False, bool):
            raise BadRequest("snippets must be true or false")
        numbers = {
            name: _number(name, data.get(name, default), most)
            for name, default, most in (
                ("facet_limit", FACET_LIMIT, MOST_VALUES),
                ("passages", 0, MAX_PASSAGES),
                ("terms", 0, LIMIT),
            )
        }
        return cls(
            *(names, ranges, numbers["facet_limit"], has_snippets, numbers["passages"], numbers["terms"]),
            _chosen_in(data.get("page_facets") or {}),
        )

    @classmethod
    def taken_from(cls, form: dict[str, Any], indexes: Container[str]) -> Self:
        """Return the additions in *form*, the parameters of ``@search``, and remove them there.  Raises BadRequest.

        A parameter that is one of *indexes* of the catalog is left alone.
        """
        taken = {name: form.pop(name) for name in NAMES if name in form and name not in indexes}
        data: dict[str, Any] = {name: number_in(str(value)) for name, value in taken.items() if name in NAMES[2:]}
        data["snippets"] = str(taken.get("snippets")).lower() in TRUE_TEXTS
        if isinstance(names := taken.get("facets", []), str):
            names = [part.strip() for part in names.split(",") if part.strip()]
        try:
            data |= {"facets": names, "facet_ranges": json_in(taken.get("facet_ranges") or "{}")}
        except (TypeError, ValueError) as error:
            raise BadRequest("facet_ranges must be JSON: {index: {label: [from, up to]}}") from error
        return cls.of_json(data)

    def seen_by(self, context: Any, request: Any) -> "Additions":
        """Return the additions without facets whose values the user of *request* may not see."""
        visible = set(visible_facets([*self.facets, *self.ranges, *self.page_facets], context, request))
        return replace(
            self,
            facets=[name for name in self.facets if name in visible],
            ranges={name: of for name, of in self.ranges.items() if name in visible},
            page_facets={name: values for name, values in self.page_facets.items() if name in visible},
        )


def _chosen_in(data: Any) -> dict[str, list[str]]:
    """Return *data*, index -> chosen values of its facet.  Raises BadRequest for other data."""
    if isinstance(data, dict) and len(data) <= MOST_FACETS:
        chosen = {name: tokens_in(values) for name, values in data.items()}
        if None not in chosen.values():
            return {name: values or [] for name, values in chosen.items()}
    raise BadRequest(f"page_facets must be {{index: [value]}}, with {MOST_FACETS} indexes at most")


def _number(name: str, value: Any, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise BadRequest(f"{name} must be a number from 0 to {most}")
    return value
