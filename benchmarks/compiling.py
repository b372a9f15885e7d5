"""Measures the compilation time of a search for new words, with a cache for the parts of some of its indexes.

``python -m benchmarks.compiling`` prints the processor time in µs, and the ratio to an uncached run of the same round.
"""

from collections.abc import Collection
from DateTime import DateTime
from itertools import count
from plone.pgcatalog.fulltext.text_index import ZCTextIndexTranslator
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from plone.pgcatalog.indexes.simple import KeywordIndexTranslator
from plone.pgcatalog.query.compiler import CompiledQueries
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from statistics import median
from tests.unit.compiling import text_index
from tests.unit.compiling import TRANSLATORS
from time import process_time
from typing import Any


ROUNDS, SEARCHES = 40, 400
TEXT = "SearchableText"
INDEXES: dict[str, IndexTranslator] = {
    **TRANSLATORS,
    TEXT: ZCTextIndexTranslator(text_index(TEXT), "searchable_text"),
    "allowedRolesAndUsers": KeywordIndexTranslator(KeywordIndex("allowedRolesAndUsers"), "allowed"),
    "effectiveRange": DateRangeIndexTranslator(DateRangeIndex("effectiveRange", "effective", "expires"), "effective"),
}
#: The other conditions of a member's search in a section.
FILTERS: dict[str, Any] = {
    "allowedRolesAndUsers": ["Anonymous", "Authenticated", "Member", "user:AuthenticatedUsers", "user:mara"],
    "effectiveRange": DateTime("2026/11/27 12:00 UTC"),
    "path": "/Plone/news",
    "portal_type": ["Document", "Event", "File", "Folder", "Image", "Link", "News Item"],
    "b_size": 25,
}
numbers = count()


def compiling(remembered: Collection[str]) -> float:
    """Return the µs for compiling one of SEARCHES, with a cache for the parts of the indexes *remembered*."""
    memory = CompiledQueries(INDEXES, {TEXT: INDEXES[TEXT].index.getLexicon()})
    memory._own &= set(remembered)
    texts = [f"word{number}* AND annual{number}*" for number, _ in zip(numbers, range(SEARCHES), strict=False)]
    started = process_time()
    for text in texts:
        memory.find_or_compile({TEXT: text, **FILTERS}, SearchContext(INDEXES), [("created", True)], None)
    return (process_time() - started) / SEARCHES * 1e6


def main() -> None:
    parts = [name for name in FILTERS if name in INDEXES]
    variants: list[Collection[str]] = [(), *([part] for part in parts), parts]
    times = [[compiling(variant) for variant in variants] for _ in range(ROUNDS)]
    print(f"{'parts':66}{'µs':>6}  ratio (quartiles)")
    for number, variant in enumerate(variants):
        ratios = sorted(each[number] / each[0] for each in times)
        low, middle, high = (ratios[len(ratios) * quarter // 4] for quarter in (1, 2, 3))
        micros = median(each[number] for each in times)
        print(f"{', '.join(variant) or 'none':66}{micros:6.1f}  {middle:.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
