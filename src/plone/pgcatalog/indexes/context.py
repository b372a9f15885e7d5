"""The context of a search: settings that its query does not contain."""

from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import Any
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from plone.pgcatalog.fulltext.ranking import Weights
    from plone.pgcatalog.fulltext.site import SiteTuning
    from plone.pgcatalog.fulltext.tsquery import Globs
    from plone.pgcatalog.indexes.base import IndexTranslator
    from plone.pgcatalog.query.nearest import Question
    from plone.pgcatalog.sql.expression import Condition


@dataclass(frozen=True, eq=False)
class SearchContext:
    """The settings of one search, the same for all parts of its query and for all reads of its results.

    Only text indexes apply them, and all but ``globs`` are for the index SearchableText; ``left_out`` is for whole queries.
    """

    #: name -> translator of all indexes of the catalog
    indexes: Mapping[str, "IndexTranslator"] = field(default_factory=dict)
    #: name of a text index -> words of the catalog for each word with wildcards inside
    globs: Mapping[str, "Globs"] = field(default_factory=dict)
    #: word of the query -> words that contain it and are found as well
    word_parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: the question whose meaning finds rows in addition to the words; None for a search by words only
    question: "Question | None" = None
    #: synonyms, stop words, pinned pages and boosts; None if the site has none of these
    tuning: "SiteTuning | None" = None
    #: pages that a search of visitors leaves out; None if it leaves none out
    left_out: "Condition | None" = None
    #: weights of the parts of a page; None for the weights of the site
    weights: "Weights | None" = None
    #: True for results ordered by relevance, which begin with the pinned pages
    is_ranked: bool = False
    #: True for the excluded part of a query: words do not find other forms of themselves
    is_exact: bool = False
    _cached: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def is_plain(self) -> bool:
        """True if words find the same rows as in any other search of the catalog."""
        return not (self.globs or self.word_parts) and self.question is None and self.tuning is None

    def exact(self) -> "SearchContext":
        """Return the context of the excluded part of the search, which finds exactly the rows that ZCatalog finds."""
        return replace(self, word_parts={}, question=None, tuning=None, is_exact=True)

    def once[T](self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result of the first call of *compute* in this context for *key*."""
        if key not in self._cached:
            self._cached[key] = compute()
        value: T = self._cached[key]
        return value
