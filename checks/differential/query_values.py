"""Values for queries: most are in the indexes, some are not."""

from DateTime import DateTime
from random import Random
from tests.property import content
from typing import Any


NOBODY = ("nobody", "", None, 0, 10, "10", 1.5, "ÄÖ", "x" * 3000, "%", "'", "😀")


class QueryValues:
    """Samples of the oracle's indexes, taken once."""

    SORTABLE = (
        *("FieldIndex", "DateIndex", "UUIDIndex", "BooleanIndex", "GopipIndex", "ExtendedPathIndex", "PathIndex"),
        *("DateRecurringIndex", "DateRangeIndex"),
    )

    def __init__(self, oracle: Any) -> None:
        indexes = oracle._catalog.indexes
        self.names = sorted(indexes)
        self.meta_types = {name: indexes[name].meta_type for name in self.names}
        self.paths = sorted(oracle._catalog.uids)
        self.known: dict[str, list[Any]] = {}
        for name in self.names:
            if self.meta_types[name] in ("FieldIndex", "KeywordIndex", "UUIDIndex"):
                self.known[name] = list(indexes[name].uniqueValues())
        self.dates = [
            brain_date
            for path in self.paths
            for name in ("created", "effective", "expires", "start", "deadline")
            if (brain_date := _metadata(oracle, path).get(name)) and name in _metadata(oracle, path)
        ]

    def value(self, random: Random, name: str) -> Any:
        """Return a value for the index *name*, which in most cases is in the index."""
        from checks.differential.queries import some_query_date

        if "Date" in self.meta_types[name]:
            chance = random.random()
            if chance < 0.45 and self.dates:
                return random.choice(self.dates)
            if chance < 0.97:
                return some_query_date(random)
            return random.choice((None, "no date", DateTime("2099/01/01 UTC"), DateTime("1900/01/01 UTC"), 7))
        known = self.known.get(name)
        if known and random.random() < 0.85:
            return random.choice(known)
        if name == "rank":
            return random.choice(content.RANKS)
        return random.choice(NOBODY)

    def path(self, random: Random) -> Any:
        """Return a path, or a variant accepted in its place: relative, with a level, with a trailing slash."""
        path = random.choice(self.paths)
        chance = random.random()
        if chance < 0.7:
            return path
        if chance < 0.75:
            return path + "/"
        if chance < 0.8:
            return path.rpartition("/")[2]
        if chance < 0.85:
            return (path.rpartition("/")[2], random.choice((-1, 0, 1, 2, 3)))
        if chance < 0.9:
            return path[:-1]
        return random.choice(("/", "", "/plone", "plone", "/nobody", "//", "/plone/my_folder/../x", "/plone%"))


def _metadata(oracle: Any, path: str) -> dict[str, Any]:
    catalog = oracle._catalog
    found: dict[str, Any] = catalog.getMetadataForRID(catalog.uids[path])
    return found
