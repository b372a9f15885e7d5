"""Where in a page's searchable text its title, description and keywords stand."""

from collections.abc import Callable
from collections.abc import Sequence
from plone.pgcatalog.fulltext.lexicon import Part
from Products.PluginIndexes.util import safe_callable
from typing import Any


#: Attributes and the labels that their words get in a tsvector.
LABELS = (("Title", "A"), ("Description", "B"), ("Subject", "C"))
#: Places that are compared, and words that are: a text may repeat itself for megabytes.
MAX_PLACES = 1000
MAX_WORDS = 500


def find_parts(obj: Any, source: Sequence[str], words: Callable[[list[str]], list[str]]) -> list[Part]:
    """Return where in *source*, the words of a text of *obj*, its parts begin and end, and their labels.

    *words* makes words of texts.  A part is where all its words stand in a row for the first time, behind the part
    before, or anywhere; one that is nowhere has no label: its words count as those of the body.
    """
    found: list[Part] = []
    for name, label in LABELS:
        part = words(texts_of(obj, name))[:MAX_WORDS]
        start = _find(source, part, max((end for _, end, _ in found), default=0))
        if start is None:
            start = _find(source, part, 0)
        if start is not None and not any(start < end and first < start + len(part) for first, end, _ in found):
            found.append((start, start + len(part), label))
    return found


def texts_of(obj: Any, name: str) -> list[str]:
    """Return the strings that the attribute *name* of *obj* is or gives."""
    value = getattr(obj, name, None)
    if value is not None and safe_callable(value):
        value = value()
    values = value if isinstance(value, list | tuple) else (value,)
    return [value for value in values if isinstance(value, str)]


def _find(source: Sequence[str], part: list[str], start: int) -> int | None:
    if not part:
        return None
    for _ in range(MAX_PLACES):
        try:
            start = source.index(part[0], start)
        except ValueError:
            return None
        if source[start : start + len(part)] == part:
            return start
        start += 1
    return None
