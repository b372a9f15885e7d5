"""What results can do besides being brains in order: said here, done by rooms above, which a catalog is given."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import Protocol


class Features(Protocol):
    """Each function takes the *results* it is for; ``CatalogSearchResults`` has methods of the same names."""

    def facets(self, results: Any, /, *args: Any, **options: Any) -> Mapping[str, Any]:
        """Return index name -> counted values."""

    def facet_counts(self, results: Any, /) -> Mapping[str, Any]:
        """Return counts as eea.facetednavigation wants them."""

    def highlighter(self, results: Any, /) -> Any:
        """Return what marks the words that were searched for."""

    def snippets(self, results: Any, brains: Iterable[Any], /, *args: Any, **options: Any) -> dict[int, str]:
        """Return record id -> HTML."""
