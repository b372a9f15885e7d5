"""The facets of the search page: chosen values, counted values, and the values that are offered."""

from abc import ABC
from abc import abstractmethod
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from datetime import tzinfo
from itertools import islice
from plone.pgcatalog.discovery.facet_groups import DATES
from plone.pgcatalog.discovery.facet_groups import kind_of
from plone.pgcatalog.discovery.facet_groups import PLACES
from plone.pgcatalog.discovery.facet_groups import VALUES
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import In
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.query.objects import Path
from plone.pgcatalog.query.objects import Range
from plone.pgcatalog.searchpage.sites import SITES
from typing import Any

import re


#: Maximum number of offered values of a facet, and the number shown at first.
OFFERED, SHOWN = 30, 6
#: Maximum number of chosen values of a facet.
MOST_CHOSEN = 20
#: Maximum number of places, besides the root, whose folders are offered.
MOST_OPENED = 6
#: The first year that is offered, and the number of years after the present one.
FIRST_YEAR, YEARS_AHEAD = 1950, 10

_PERIOD = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2]))?")


@dataclass(frozen=True)
class FacetValue:
    """An offered value: ``token`` is its value in the URL, ``count`` None if it was not counted.

    A year has months as its ``parts``, a place has folders.
    """

    token: str
    title: str
    count: int | None
    is_chosen: bool
    parts: tuple["FacetValue", ...] = ()

    @property
    def is_in_sight(self) -> bool:
        """True if the value or one of its parts is chosen."""
        return self.is_chosen or any(part.is_in_sight for part in self.parts)


def tokens_in(value: Any) -> list[str] | None:
    """Return the values of a request's parameter; None if *value* is neither a string nor a list of strings."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(text, str) for text in values):
        return None
    return list(dict.fromkeys(filter(None, values)))[:MOST_CHOSEN]


class PageFacet(ABC):
    """A facet of the index *index* in a search by the parameters in *form*."""

    def __init__(self, index: Any, form: Mapping[str, Any]) -> None:
        self.index = index
        self.name: str = index.getId()
        self.tokens = tokens_in(form.get(self.parameter)) or []

    @property
    def parameter(self) -> str:
        """The URL parameter of the chosen values: the name of the index, as on Plone's page."""
        return self.name

    @property
    def field(self) -> str:
        """The name of the fields in the HTML form."""
        return f"{self.parameter}:list"

    @abstractmethod
    def expression(self) -> Expression | None:
        """Return the criterion of the chosen values, None if none is chosen."""

    @abstractmethod
    def count(self, options: dict[str, Any]) -> None:
        """Add the values to be counted to *options*, keyword arguments of ``FacetQuery``."""

    @abstractmethod
    def values(self, counts: Mapping[Any, int], titles: Mapping[str, str]) -> list[FacetValue]:
        """Return the values to offer, from the *counts* of the facet and the *titles* of tokens.

        A value without a title is shown by its token.  Chosen values are included even if they were not counted.
        """

    def tokens_of(self, counts: Mapping[Any, int]) -> list[str]:
        """Return the tokens whose titles ``values`` needs: only counted ones, which the visitor may see."""
        return list(map(str, counts))

    def chosen(self, values: Iterable[FacetValue]) -> list[FacetValue]:
        """Return the *values* that are chosen and filter the search."""
        return [value for value in values if value.is_chosen]

    def removed(self, token: str) -> list[str]:
        """Return the tokens that are deselected when the user removes *token*."""
        return [token]


class ValueFacet(PageFacet):
    """A facet of all values of an index."""

    def expression(self) -> Expression | None:
        return In(self.name, map(self._key, self.tokens)) if self.tokens else None

    def count(self, options: dict[str, Any]) -> None:
        options["names"].append(self.name)

    def values(self, counts: Mapping[Any, int], titles: Mapping[str, str]) -> list[FacetValue]:
        counted = {str(key): count for key, count in counts.items()}
        missing = dict.fromkeys(token for token in self.tokens if token not in counted)
        return [
            *(FacetValue(token, titles.get(token, token), n, token in self.tokens) for token, n in counted.items()),
            *(FacetValue(token, token, None, True) for token in missing),
        ]

    def _key(self, token: str) -> Any:
        return token == "True" if self.index.meta_type == "BooleanIndex" else token


class SiteFacet(ValueFacet):
    """A facet of the sites *names*; it selects among hits that were found, so it has no criterion."""

    def __init__(self, names: Container[str], form: Mapping[str, Any]) -> None:
        self.name = SITES
        self.tokens = [token for token in tokens_in(form.get(SITES)) or [] if token in names]

    def expression(self) -> None:
        """See PageFacet."""

    def count(self, options: dict[str, Any]) -> None:
        """See PageFacet."""


class PlaceFacet(PageFacet):
    """A facet of the folders below *root*, the path of the site or of a navigation root.

    A chosen folder offers its subfolders; it filters the search unless one of its subfolders is chosen.
    """

    def __init__(self, index: Any, form: Mapping[str, Any], root: str) -> None:
        super().__init__(index, form)
        # A token of slashes only is no path, and Plone cannot traverse it.
        self.tokens = [token for token in self.tokens if token.strip("/")]
        self.root = root

    @property
    def opened(self) -> list[str]:
        """The places whose folders are offered: the root, the chosen places, and the folders above them."""
        ways: dict[str, None] = {}
        for token in self.tokens:
            # Limited here: a long path has as many folders above it as it has parts.
            ways |= dict.fromkeys(islice(self._way(token), MOST_OPENED))
        return [self.root, *islice(ways, MOST_OPENED)]

    def _way(self, path: str) -> Iterator[str]:
        """Yield the places from below the root down to *path*; nothing if *path* is not below the root."""
        if self._is_below(path, self.root):
            end = len(self.root)
            while (end := path.find("/", end + 1)) >= 0:
                yield path[:end]
            yield path

    @staticmethod
    def _is_below(path: str, place: str) -> bool:
        return path.startswith(f"{place}/")

    @property
    def _narrowing(self) -> list[str]:
        return [token for token in self.tokens if not any(self._is_below(other, token) for other in self.tokens)]

    def expression(self) -> Expression | None:
        return Path(self._narrowing) if self.tokens else None

    def count(self, options: dict[str, Any]) -> None:
        options["children"][self.name] = self.opened
        options["only_folders"] = True

    def tokens_of(self, counts: Mapping[Any, int]) -> list[str]:
        # A chosen place may be outside the root; its title is read from the catalog like the others.
        return list(dict.fromkeys([*self.tokens, *self.opened[1:], *counts]))

    def values(self, counts: Mapping[Any, int], titles: Mapping[str, str]) -> list[FacetValue]:
        offered = dict.fromkeys([*(token for token in counts if token in titles), *self.opened[1:], *self.tokens])
        ways = {token for token in offered if self._is_below(token, self.root)}
        places: dict[str, list[str]] = {}
        for token in offered:
            parent = token.rpartition("/")[0]
            places.setdefault(parent if parent in ways else self.root, []).append(token)

        def values_in(place: str) -> tuple[FacetValue, ...]:
            return tuple(value(token) for token in places.get(place, ()))

        def value(token: str) -> FacetValue:
            # Without a title, it is not a folder that the visitor may see.
            count = counts.get(token) if token in titles else None
            parts = values_in(token) if self._is_below(token, self.root) else ()
            return FacetValue(token, titles.get(token, token), count, token in self.tokens, parts)

        return list(values_in(self.root))

    def chosen(self, values: Iterable[FacetValue]) -> list[FacetValue]:
        every = [part for value in values for part in (value, *self.chosen(value.parts))]
        return [value for value in every if value.is_chosen]

    def removed(self, token: str) -> list[str]:
        return [token, *(other for other in self.tokens if self._is_below(other, token))]


def is_period(token: str) -> bool:
    """Return whether *token* is a year or a month, as ``2026`` or ``2026-11``."""
    # Beyond these years, the bounds are not valid dates in every time zone.
    return _PERIOD.fullmatch(token) is not None and "1000" <= token[:4] < "9000"


def ends(period: str, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the start of *period*, a year or a month, and the start of the next one."""
    year, month = int(period[:4]), int(period[5:] or 1)
    year_behind, months = divmod(year * 12 + month - 1 + (1 if period[4:] else 12), 12)
    return datetime(year, month, 1, tzinfo=zone), datetime(year_behind, months + 1, 1, tzinfo=zone)


class DateFacet(PageFacet):
    """A facet of years, and of the months of chosen years, in the time zone *zone*; *now* is the present year."""

    def __init__(self, index: Any, form: Mapping[str, Any], zone: tzinfo, now: int) -> None:
        super().__init__(index, form)
        self.tokens = list(filter(is_period, self.tokens))
        self._zone = zone
        self._now = now

    @property
    def parameter(self) -> str:
        # The name of the index is a parameter of Plone's own, with another meaning.
        return f"facet.{self.name}"

    @property
    def _narrowing(self) -> list[str]:
        """The chosen periods, without the years of chosen months."""
        years = {token[:4] for token in self.tokens if token[4:]}
        return [token for token in self.tokens if token not in years]

    def expression(self) -> Expression | None:
        if not self.tokens:
            return None
        periods = (ends(token, self._zone) for token in self._narrowing)
        return Or(*(And(Range(self.name, min=low), Not(Range(self.name, min=high))) for low, high in periods))

    def count(self, options: dict[str, Any]) -> None:
        years = map(str, range(FIRST_YEAR, self._now + YEARS_AHEAD + 1))
        chosen = dict.fromkeys(token[:4] for token in self.tokens)
        months = (f"{year}-{month:02}" for year in chosen for month in range(1, 13))
        periods = dict.fromkeys([*years, *chosen, *months])
        options["ranges"][self.name] = {token: ends(token, self._zone) for token in periods}

    def tokens_of(self, counts: Mapping[Any, int]) -> list[str]:
        return [token for token, count in counts.items() if count or token in self.tokens]

    def values(self, counts: Mapping[Any, int], titles: Mapping[str, str]) -> list[FacetValue]:
        offered = self.tokens_of(counts) if counts else self.tokens
        # The year of a chosen month is included, to hold the month.
        years = sorted({token[:4] for token in offered}, reverse=True)
        return [
            FacetValue(
                year,
                titles.get(year, year),
                counts.get(year),
                year in self.tokens,
                tuple(
                    FacetValue(token, titles.get(token, token), counts.get(token), token in self.tokens)
                    for token in sorted(offered)
                    if len(token) > 4 and token.startswith(year)
                ),
            )
            for year in years
        ]

    def chosen(self, values: Iterable[FacetValue]) -> list[FacetValue]:
        every = [value for year in values for value in (year, *year.parts)]
        return [value for value in every if value.token in self._narrowing]


def page_facets(
    indexes: Iterable[Any], form: Mapping[str, Any], *, root: str, zone: tzinfo, now: int
) -> list[PageFacet]:
    """Return the facets of *indexes*, index objects, in a search by *form*; unsupported indexes are left out."""
    facets: list[PageFacet] = []
    for index in indexes:
        kind = kind_of(index)
        if kind == VALUES:
            facets.append(ValueFacet(index, form))
        elif kind == PLACES:
            facets.append(PlaceFacet(index, form, root))
        elif kind == DATES:
            facets.append(DateFacet(index, form, zone, now))
    # A parameter that is not a string, such as a record with a range, is a criterion as on Plone's page, not a choice.
    return [facet for facet in facets if tokens_in(form.get(facet.parameter, [])) is not None]
