"""Which indexes a search page can offer as facets, and in which way each is counted."""

from plone.pgcatalog.settings import RESTRICTIONS
from typing import Any


#: Counted by value, by year and month, and by the folders below the one that is searched.
VALUES, DATES, PLACES = "values", "dates", "places"

KINDS = {
    "FieldIndex": VALUES,
    "KeywordIndex": VALUES,
    "BooleanIndex": VALUES,
    "DateIndex": DATES,
    "ExtendedPathIndex": PLACES,
}


def kind_of(index: Any) -> str | None:
    """Return how *index*, an index object, is counted; None for one that is no facet of a search page."""
    name = index.getId()
    kind = KINDS.get(index.meta_type)
    # Other indexes of paths hold what is no place in the site.
    if name in RESTRICTIONS or (kind == PLACES and name != "path"):
        return None
    return kind
