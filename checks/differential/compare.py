"""Compares the answers of both catalogs: results, brains, unique values, index data, exceptions.

Not compared is the order that ZCatalog itself leaves open: that of equal sort keys, and without a sort that of its random
record ids.
"""

from checks.differential.queries import Case
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field
from DateTime import DateTime
from datetime import datetime
from datetime import timedelta
from Products.PluginIndexes.util import MAX32
from random import Random
from tests.property.pair import Pair
from typing import Any
from typing import cast

import Missing


#: Index data that is a set, in any order.
UNORDERED = ("KeywordIndex",)
#: Numbers for the ZMI with another meaning here (index-numbers), and methods that read the caller's variables.
NOT_COMPARED = {
    "ZCTextIndex": ("numObjects",),
    "GopipIndex": ("documentToKeyMap", "uniqueValuesFor", "withLengths", "indexSize"),
    "DateRangeIndex": ("indexSize",),
    "PathIndex": ("indexSize",),
    "ExtendedPathIndex": ("indexSize",),
}
#: Number of characters of an answer that are shown.
LONGEST = 500


@dataclass
class Answer:
    """A catalog's answer to a case: an error, or paths, the length and the true total."""

    error: BaseException | None = None
    paths: list[str] = field(default_factory=list)
    length: int = 0
    total: int = 0
    brains: Any = ()

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return f"{self.length} of {self.total}: {self.paths}"


@dataclass
class Difference:
    """One difference; *subject* is the case, or the compared thing, *path* the row concerned."""

    kind: str
    subject: Any
    ours: Any
    theirs: Any
    path: str = ""

    def __str__(self) -> str:
        text = f"{self.kind}: {self.subject}\n  ours:   {short(self.ours)}\n  theirs: {short(self.theirs)}"
        paths = [a.paths if isinstance(a, Answer) else a for a in (self.ours, self.theirs)]
        if self.kind != "order" and all(isinstance(p, list) for p in paths):
            mine, other = (set(p) for p in paths)
            text += f"\n  only ours:   {short(sorted(mine - other))}\n  only theirs: {short(sorted(other - mine))}"
        return text


def short(value: Any) -> str:
    text = str(value)
    return text if len(text) < LONGEST else text[:LONGEST] + "…"


def ask(catalog: Any, case: Case) -> Answer:
    """Return the answer of *catalog* to *case*.

    ZCatalog's cache on the request is cleared before: its key has a counter per index, which an abort sets back, and with
    ``not`` a cached answer differs from a new one.
    """
    catalog.REQUEST.other.pop("__catalog_cache__", None)
    try:
        results = case.ask(catalog)
        brains = list(results)
        return Answer(None, [b.getPath() for b in brains], len(results), results.actual_result_count, brains)
    except Exception as error:  # noqa: BLE001  whatever it is, both must raise it
        return Answer(error)


def both_answers(pair: Pair, case: Case) -> tuple[Answer, Answer]:
    with pair.acting_as(case.user):
        return ask(pair.ours, case), ask(pair.oracle, case)


def compare_case(pair: Pair, case: Case) -> Difference | None:
    """Return the difference between the answers to *case*, None if they are equal."""
    return compare_answers(pair, case, *both_answers(pair, case))


def compare_answers(pair: Pair, case: Case, ours: Answer, theirs: Answer, brains: int = 3) -> Difference | None:
    """Return the difference between these answers to *case*, None if they are equal."""
    kind = _difference(pair, case, ours, theirs)
    if kind is not None:
        return Difference(kind, case, ours, theirs)
    known = dict(zip(theirs.paths, theirs.brains, strict=True))
    for brain in ours.brains[:brains]:
        if brain.getPath() in known and (mine := brain_values(brain)) != (
            other := brain_values(known[brain.getPath()])
        ):
            return Difference("brain", case, *only_different(mine, other), brain.getPath())
        if pair.ours.getrid(brain.getPath()) != brain.getRID():
            return Difference("rid", case, brain.getRID(), pair.ours.getrid(brain.getPath()))
    return None


def _difference(pair: Pair, case: Case, ours: Answer, theirs: Answer) -> str | None:
    if ours.error or theirs.error:
        return None if type(ours.error) is type(theirs.error) else "error"
    if ours.length != len(ours.paths) or len(set(ours.paths)) != len(ours.paths):
        return "length"
    if sort_names(case):
        mine, other = sort_keys(pair.oracle, case, ours.paths), sort_keys(pair.oracle, case, theirs.paths)
        if len(ours.paths) == len(theirs.paths) and mine != other:
            return "order"
    if len(ours.paths) != len(theirs.paths):
        return "size"
    if set(ours.paths) != set(theirs.paths) and not (is_window(case) and set(ours.paths) <= everything(pair, case)):
        return "paths"
    return None if ours.total == theirs.total else "total"


def sort_names(case: Case) -> list[str]:
    """Return the names of the indexes that sort *case*."""
    names = case.query.get("sort-on", case.query.get("sort_on"))
    if names is None:
        return []
    return list(names) if isinstance(names, list | tuple) else [names]


def is_window(case: Case) -> bool:
    return any(f"{word}{joint}{end}" in case.query for word, joint, end in WINDOW)


WINDOW = (("sort", "_", "limit"), ("sort", "-", "limit"), ("b", "_", "start"), ("b", "_", "size"))


def whole(case: Case) -> Case:
    """Return *case* without its window."""
    for word, joint, end in WINDOW:
        case = case.without(f"{word}{joint}{end}")
    return case


def everything(pair: Pair, case: Case) -> set[str]:
    """Return all paths that the oracle finds for *case*."""
    with pair.acting_as(case.user):
        return set(ask(pair.oracle, whole(case)).paths)


#: Conversions that make sort keys comparable: keywords come in any order, an open end is None.
READABLE: dict[str, Any] = {
    "KeywordIndex": sorted,
    "DateRangeIndex": lambda ends: (-MAX32 if ends[0] is None else ends[0], MAX32 if ends[1] is None else ends[1]),
}


def sort_keys(oracle: Any, case: Case, paths: Iterable[str]) -> list[Any]:
    """Return for each path its keys in the oracle's sort indexes."""
    uids = oracle._catalog.uids
    rs = [uids[path] for path in paths]
    maps = []
    for name in sort_names(case):
        index = oracle._catalog.indexes.get(name)
        if hasattr(index, "documentToKeyMap"):
            keys = key_map(index, rs)
            if index.meta_type in READABLE:
                keys = {rid: READABLE[index.meta_type](keys[rid]) for rid in rs if rid in keys}
            maps.append(keys)
    return [tuple(keys.get(rid) for keys in maps) for rid in rs]


def key_map(index: Any, rs: list[int]) -> dict[int, Any]:
    """Return rid -> sort key; a GopipIndex sorts *rs*, the rows, and fails for a row that is not in its folder."""
    try:
        return cast(dict[int, Any], index.documentToKeyMap())
    except ValueError:
        if len(rs) == 1:
            raise
        rs = [row for row in rs if row in key_map(index, [row])]
        return cast(dict[int, Any], index.documentToKeyMap())


def brain_values(brain: Any) -> dict[str, Any]:
    """Return every value of *brain* with its type."""
    names = [name for name in brain.__record_schema__ if not name.startswith("data_record_")]
    values = {name: plain(brain[name]) for name in names}
    return values | {"getURL()": brain.getURL(), "getPath()": brain.getPath()}


def only_different(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    names = [n for n in ours.keys() | theirs.keys() if ours.get(n, "(none)") != theirs.get(n, "(none)")]
    return {n: ours.get(n, "(none)") for n in names}, {n: theirs.get(n, "(none)") for n in names}


def plain(value: Any) -> Any:
    """Return *value* in a form that is equal only for the same value of the same type.

    zodb-json-codec, which processes the oracle's values, turns pytz.utc into datetime.timezone.utc.
    """
    if value is Missing.Value:
        return "Missing.Value"
    if isinstance(value, DateTime):
        return ("DateTime", repr(value), bool(value.timezoneNaive()))
    if isinstance(value, datetime):
        offset: timedelta | None = value.utcoffset()
        zone = "UTC" if offset == timedelta(0) and "UTC" in str(value.tzinfo) else str(value.tzinfo)
        return ("datetime", value.replace(tzinfo=None), offset, zone)
    if isinstance(value, list | tuple):
        return (type(value).__name__, [plain(v) for v in value])
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return (type(value).__name__, value)


def values_only(value: Any) -> Any:
    """Return *value* without the type names that ``plain`` adds."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] in ("int", "float", "bool", "str", "Message"):
        return value[1]
    if isinstance(value, list | tuple):
        return [values_only(v) for v in value]
    if isinstance(value, dict):
        return {k: values_only(v) for k, v in value.items()}
    return value


def index_data(catalog: Any, path: str) -> dict[str, Any]:
    """Return index -> indexed value of *path*."""
    rid = catalog.getrid(path)
    data: dict[str, Any] = {}
    for name, value in catalog.getIndexDataForRID(rid).items():
        unordered = catalog._catalog.indexes[name].meta_type in UNORDERED and value != ""
        data[name] = sorted(map(repr, value)) if unordered else plain(value)
    return data


def compare_rows(pair: Pair, paths: Iterable[str]) -> Difference | None:
    """Compare the index data and the metadata of *paths*."""
    for path in paths:
        mine, other = index_data(pair.ours, path), index_data(pair.oracle, path)
        if mine != other:
            return Difference("index data", path, *only_different(mine, other))
        values = [
            {k: plain(v) for k, v in c._catalog.getMetadataForRID(c.getrid(path)).items()} for c in catalogs(pair)
        ]
        if values[0] != values[1]:
            return Difference("metadata", path, *only_different(*values), path)
    return None


def catalogs(pair: Pair) -> tuple[Any, Any]:
    return pair.ours, pair.oracle


def compare_unique(pair: Pair, names: Iterable[str]) -> Difference | None:
    """Compare the unique values, their numbers and sizes of the indexes *names*."""
    for name in names:
        answers = [_unique(catalog, name) for catalog in catalogs(pair)]
        if answers[0] != answers[1]:
            return Difference("unique values", name, *only_different(*answers))
    return None


def _unique(catalog: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    index = catalog.Indexes[name]
    for what, question in (
        ("uniqueValuesFor", lambda: [plain(v) for v in catalog.uniqueValuesFor(name)]),
        ("withLengths", lambda: [(plain(v), n) for v, n in index.uniqueValues(withLengths=True)]),
        ("numObjects", lambda: index.numObjects()),
        ("indexSize", lambda: index.indexSize()),
        ("documentToKeyMap", lambda: len(index.documentToKeyMap())),
    ):
        try:
            found[what] = question()
        except Exception as error:  # noqa: BLE001
            found[what] = type(error).__name__
    if index.meta_type == "BooleanIndex":  # ZCatalog begins with the value with fewer rows
        found = {what: sorted(v) if isinstance(v, list) else v for what, v in found.items()}
    for what in NOT_COMPARED.get(index.meta_type, ()):
        del found[what]
    return found


def compare_apply(pair: Pair, case: Case) -> Difference | None:
    """Compare ``_apply_index`` of every index in the query of *case*."""
    for name in case.query:
        if name in pair.oracle._catalog.indexes:
            ours, theirs = (_applied(catalog, name, case.query) for catalog in catalogs(pair))
            if ours != theirs:
                single = Case({k: v for k, v in case.query.items() if k == name or k.startswith(f"{name}_")})
                return Difference("_apply_index", single, ours, theirs)
    return None


def _applied(catalog: Any, name: str, query: dict[str, Any]) -> Any:
    catalog.REQUEST.other.pop("__catalog_cache__", None)
    try:
        found = catalog._catalog.getIndex(name)._apply_index(query)
    except Exception as error:  # noqa: BLE001
        return type(error).__name__
    # ZCatalog's and-empty returns None instead of an empty set.
    return None if found is None else sorted(catalog.getpath(rid) for rid in found[0] or ())


def compare_contents(pair: Pair) -> Difference | None:
    """Compare the catalogued paths, and their number."""
    ours, theirs = (set(catalog._catalog.uids) for catalog in catalogs(pair))
    if ours != theirs:
        return Difference("catalogued paths", "uids", sorted(ours - theirs), sorted(theirs - ours))
    if len(pair.ours) != len(pair.oracle):
        return Difference("len", "len(catalog)", len(pair.ours), len(pair.oracle))
    return None


def sample(random: Random, items: Iterable[Any], most: int) -> list[Any]:
    found = sorted(items)
    return random.sample(found, min(most, len(found)))
