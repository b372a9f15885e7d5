"""Our deliberate deviations from ZCatalog; the names are those of docs/explanation/deviations.md.

``explain`` computes the answer of a catalog that has our deviations and is otherwise a ZCatalog: it queries the oracle for
each index of the query alone, corrects each answer by the deviations that apply to it, and sorts and cuts the rows in all of
them by the query.  A difference is explained if our answer equals this one.
"""

from Acquisition import aq_base
from checks.differential.compare import Answer
from checks.differential.compare import ask
from checks.differential.compare import both_answers
from checks.differential.compare import compare_case
from checks.differential.compare import Difference
from checks.differential.compare import index_data
from checks.differential.compare import is_window
from checks.differential.compare import plain
from checks.differential.compare import sort_keys
from checks.differential.compare import sort_names
from checks.differential.compare import values_only
from checks.differential.compare import whole
from checks.differential.queries import Case
from dataclasses import dataclass
from dataclasses import field
from Products.ZCatalog.query import IndexQuery
from tests.property.pair import Pair
from typing import Any


UNINDEX = ("FieldIndex", "KeywordIndex", "UUIDIndex", "DateIndex", "DateRecurringIndex")
DATES = ("DateIndex", "DateRecurringIndex")
PATHS = ("PathIndex", "ExtendedPathIndex")
#: Errors of ZCatalog for queries that we answer: error type, meta types (all if empty) and the deviation.
ERRORS = (
    ("ParseError", ("ZCTextIndex",), "text-unparsable"),
    ("QueryError", ("ZCTextIndex",), "text-leading-wildcard"),
    ("TypeError", UNINDEX, "mixed-types"),
    ("TypeError", PATHS, "path-malformed"),
    ("ValueError", UNINDEX, "range-not-all"),
)


def explain(pair: Pair, difference: Difference) -> str | None:
    """Return the names of the deviations that explain *difference*, None for a bug."""
    if isinstance(difference.subject, Case) and isinstance(difference.ours, Answer):
        return explain_answer(pair, difference.subject)
    if difference.kind == "index data":
        return explain_index_data(pair, difference)
    if difference.kind in ("brain", "metadata"):
        return "metadata-equal" if is_newer_but_equal(pair, difference) else None
    if difference.kind == "unique values" and values_only(difference.ours) == values_only(difference.theirs):
        return "index-values"
    if difference.subject == "UID":
        return "uuid-duplicates" if duplicates(pair) else None
    if difference.kind == "unique values" and difference.subject in ("path", "place"):
        return explain_path_keys(difference)
    if difference.kind == "unique values":
        return explain_keys(pair, str(difference.subject))
    if difference.kind == "_apply_index" and isinstance(difference.subject, Case):
        return explain_answer(pair, difference.subject)
    return None


def explain_index_data(pair: Pair, difference: Difference) -> str | None:
    """Explain the difference of each index by itself."""
    found = set()
    for name, ours in difference.ours.items():
        theirs = difference.theirs[name]
        if name == "UID" and duplicates(pair):
            found.add("uuid-duplicates")
        elif values_only(ours) == values_only(theirs):
            found.add("index-values")
        elif ours == plain("") and theirs in (plain(0), plain(0.0), plain(False)):
            found.add("vanished-value")  # getIndexDataForRID has "" for a missing value
        else:
            return None
    return " + ".join(sorted(found))


def explain_keys(pair: Pair, name: str) -> str | None:
    """Explain the keys of the index *name* by those of each row."""
    found = set()
    for path in pair.oracle._catalog.uids:
        ours, theirs = (index_data(catalog, path)[name] for catalog in (pair.ours, pair.oracle))
        if ours != theirs:
            reason = explain_index_data(pair, Difference("index data", path, {name: ours}, {name: theirs}))
            if reason is None:
                return None
            found.add(reason)
    return " + ".join(sorted(found)) or None


def is_newer_but_equal(pair: Pair, difference: Difference) -> bool:
    """Return whether our values are those of the object, and ZCatalog's earlier ones are equal to them."""
    if values_only(difference.ours) != values_only(difference.theirs):
        return False
    obj = aq_base(pair.portal.unrestrictedTraverse(difference.path, None))
    return all(plain(getattr(obj, name, None)) == ours for name, ours in difference.ours.items())


def explain_path_keys(difference: Difference) -> str | None:
    ours, theirs = difference.ours["uniqueValuesFor"], difference.theirs["uniqueValuesFor"]
    same = ours == [v for v in theirs if v != ("NoneType", None)]
    return "path-unique-values" if same and difference.theirs.get("withLengths") == "TypeError" else None


@dataclass
class Expected:
    """The right answer, and the deviations that affect it."""

    paths: set[str]
    names: list[str] = field(default_factory=list)
    #: deviations without effect on ZCatalog's answer to the criterion alone, only among others
    candidates: list[str] = field(default_factory=list)

    def correct(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)


def explain_answer(pair: Pair, case: Case) -> str | None:
    ours, theirs = both_answers(pair, case)
    plainer = without_restricting_options(case)
    if plainer != case:
        same = compare_case(pair, plainer)
        return "restricting-options" if same is None else explain_answer(pair, plainer)
    if ours.error is not None:
        return explain_our_error(pair, case, ours, theirs)
    expected = expected_rows(pair, case)
    if expected is None:
        return None
    keys = expected_order(pair, case, expected)
    page = page_of(case, len(expected.paths))
    if ours.total != len(expected.paths) or ours.length != len(page) or not set(ours.paths) <= expected.paths:
        return None
    if keys is not None:
        length = min((len(k) for k in keys), default=0)
        mine = [k[:length] for k in sort_keys(pair.oracle, case, ours.paths)]
        if mine != [keys[i] for i in page]:
            return None
    expected.names += name_sorting(pair, case, theirs)
    types = {pair.oracle._catalog.indexes[name].meta_type for name in named(pair, case)}
    if type(theirs.error) is TypeError and "DateRangeIndex" in types and not expected.names:
        expected.correct("range-outside")
    return " + ".join(expected.names or expected.candidates) or None


def without_restricting_options(case: Case) -> Case:
    """Return *case* without old-style options of the indexes that restrict visibility."""
    for key in case.query:
        if case.restricted and str(key).startswith(("allowedRolesAndUsers_", "effectiveRange_")):
            case = case.without(key)
    return case


def explain_our_error(pair: Pair, case: Case, ours: Answer, theirs: Answer) -> str | None:
    """Return the deviations behind our error: an index alone raises, or it raises before, or instead of, ZCatalog's."""
    indexes = pair.oracle._catalog.indexes
    sortable = all(hasattr(indexes.get(name), "documentToKeyMap") for name in sort_names(case))
    if not sortable and theirs.error is None and not theirs.paths:
        return "error-always"
    if not sortable and type(theirs.error).__name__ == "ParseError":
        return "text-unparsable"
    for name in named(pair, case):
        if type(ask(pair.oracle, alone(case, name)).error) is type(ours.error) and (theirs.error or not theirs.paths):
            return "error-always"
        record = criterion(pair.oracle._catalog.getIndex(name), alone(case, name))
        for value in (record.get("not") if record is not None else None) or ():
            if type(ask(pair.oracle, Case({name: [value]})).error) is type(ours.error):
                return "date-not-with-query"
    return None


def named(pair: Pair, case: Case) -> list[str]:
    return [name for name in case.query if name in pair.oracle._catalog.indexes]


def alone(case: Case, name: str) -> Case:
    """Return the criterion for *name* alone, old-style options included."""
    return Case({k: v for k, v in case.query.items() if k == name or str(k).startswith(f"{name}_")})


def expected_rows(pair: Pair, case: Case) -> Expected | None:
    """Return the rows that must be found, without sorting."""
    names = named(pair, case)
    found: list[set[str]] = []
    expected = Expected(set())
    for name in names:
        if case.restricted and (name == "allowedRolesAndUsers" or (name == "effectiveRange" and case.user != "admin")):
            continue
        rows = corrected(pair, case, name, expected)
        if rows is None:
            return None
        found.append(rows)
    if case.restricted:
        show = {k: v for k, v in case.query.items() if k == "show_inactive"}
        path = case.query.get("path")
        visible = Case(show, case.method, case.user)
        with pair.acting_as(case.user):
            found.append(set(ask(pair.oracle, visible).paths))
            as_keywords = not case.method.endswith("dict")
            if path is not None and as_keywords and pair.oracle.allow_inactive(dict(case.query)):
                found[-1] = set(ask(pair.oracle, visible.with_value("show_inactive", True)).paths)
            shown = case.query.get("show_inactive")
            if shown is None:
                shown = pair.oracle.allow_inactive(dict(case.query) if as_keywords else {})
        unranged = found[-1] & without_range(pair)
        if unranged and not shown:
            expected.correct("range-unindexed")
            found[-1] -= unranged
    expected.paths = set.intersection(*found) if found else set()
    return expected


def corrected(pair: Pair, case: Case, name: str, expected: Expected) -> set[str] | None:
    """Return the rows that we must find for the criterion *name*; None if that is unknown."""
    single = alone(case, name)
    index = pair.oracle._catalog.getIndex(name)
    theirs = ask(pair.oracle, single)
    record = criterion(index, single)
    if record is not None and index.meta_type in UNINDEX:
        rows = correct_unindex(pair, name, index, record, expected, None if theirs.error else set(theirs.paths))
        if rows is not None:
            return rows
    if theirs.error is None:
        return correct_duplicates(pair, single, index, expected, set(theirs.paths))
    for error, types, deviation in ERRORS:
        if type(theirs.error).__name__ == error and index.meta_type in types:
            expected.correct(deviation)
            return set(ask(pair.ours, single).paths)
    return None


def criterion(index: Any, case: Case) -> Any:
    if not hasattr(index, "query_options"):
        return None
    try:
        return IndexQuery(case.query, index.id, index.query_options, index.operators, index.useOperator)
    except ValueError:
        return None


def correct_unindex(
    pair: Pair, name: str, index: Any, record: Any, expected: Expected, theirs: set[str] | None
) -> set[str] | None:
    """Return the rows that an index of the UnIndex family must find, None if no deviation applies."""
    keys, excluded = list(record.keys or ()), record.get("not")
    ranged = record.get("range") or (record.get("usage") or "").startswith("range")
    options = {k: record.get(k) for k in ("range", "usage") if record.get(k)}
    options["operator"] = "or" if ranged else record.operator
    if "operator" not in index.query_options:
        del options["operator"]
    if excluded and not keys and not ranged:
        rows = set(pair.oracle._catalog.uids) - rows_with(pair, name, excluded)
        note(expected, "not-alone", rows, theirs)
        return rows
    if not ranged and record.operator == "and" and all(k is None for k in keys):
        note(expected, "and-empty", set(), theirs)
        return set()
    if ranged and record.operator == "and" and keys:
        rows = set(ask(pair.oracle, Case({name: {"query": keys, **options}})).paths)
        rows -= rows_with(pair, name, excluded or [])
        note(expected, "range-and", rows, theirs)
        return rows
    if excluded and keys and index.meta_type in DATES:
        answer = ask(pair.oracle, Case({name: {"query": keys, **options}}))
        if answer.error is None:
            rows = set(answer.paths) - rows_with(pair, name, excluded)
            note(expected, "date-not-with-query", rows, theirs)
            return rows
    return None


def correct_duplicates(pair: Pair, single: Case, index: Any, expected: Expected, theirs: set[str]) -> set[str]:
    """Return *theirs*, or our rows if they differ only by objects that are catalogued twice."""
    names = {"UUIDIndex": "uuid-duplicates", "ExtendedPathIndex": "path-duplicates"}
    if index.meta_type in PATHS and is_unbounded(index, single):
        expected.correct("path-unbounded")
        return set(ask(pair.ours, single).paths)
    if index.meta_type in names:
        ours = set(ask(pair.ours, single).paths)
        if ours != theirs and ours ^ theirs <= duplicates(pair):
            expected.correct(names[index.meta_type])
            return ours
    return theirs


def is_unbounded(index: Any, single: Case) -> bool:
    """Return whether a search path has no components but a level: ZCatalog then uses the deepest level it has seen."""
    record = criterion(index, single)
    for key in (record.keys if record is not None else None) or ():
        path, level = key if isinstance(key, tuple) and len(key) == 2 else (key, record.get("level", 0))
        if isinstance(path, str) and not path.strip("/") and level != 0:
            return True
    return False


def duplicates(pair: Pair) -> set[str]:
    """Return the paths of objects that are also catalogued under another path."""
    found: set[str] = set()
    index = pair.oracle._catalog.indexes["path"]
    for path, rid in pair.oracle._catalog.uids.items():
        real = index.getEntryForObject(rid)
        if real != path:
            found |= {real, path}
    return found


def with_second_uuid(pair: Pair) -> set[str]:
    """Return the duplicates indexed with their UUID; a partly catalogued one may not be."""
    entry = pair.ours.Indexes["UID"].getEntryForObject
    return {path for path in duplicates(pair) if entry(pair.ours.getrid(path), None) is not None}


def without_range(pair: Pair) -> set[str]:
    """Return the paths that were never indexed in effectiveRange."""
    index = pair.oracle._catalog.indexes["effectiveRange"]
    return {path for path, rid in pair.oracle._catalog.uids.items() if index.getEntryForObject(rid) is None}


def rows_with(pair: Pair, name: str, values: Any) -> set[str]:
    """Return the rows that have one of *values*."""
    return {path for value in values for path in ask(pair.oracle, Case({name: [value]})).paths}


def note(expected: Expected, name: str, rows: set[str], theirs: set[str] | None) -> None:
    expected.candidates.append(name)
    if rows != theirs:
        expected.correct(name)


# -- sorting and windows


def directions(case: Case, count: int) -> list[bool]:
    order = case.query.get("sort-order", case.query.get("sort_order"))
    if case.method == "search":
        return [order == "descending"] * count
    if order is None or isinstance(order, str):
        order = [order or ""]
    reverse = [o.lower() in ("reverse", "descending") for o in order] or [False]
    return [reverse[i] if i < len(reverse) else reverse[0] for i in range(count)]


def effective_sort(pair: Pair, case: Case) -> list[str]:
    """Return the sort indexes; Plone's own methods leave out unknown ones among keywords."""
    indexes = pair.oracle._catalog.indexes
    return [name for name in sort_names(case) if hasattr(indexes.get(name), "documentToKeyMap")]


def expected_order(pair: Pair, case: Case, expected: Expected) -> list[Any] | None:
    """Return the sorted keys up to the first date, without rows that lack a value.

    The value is in the first sort index, with a window in any of them.
    """
    names = effective_sort(pair, case)
    if not names:
        return None
    paths = sorted(expected.paths)
    keyed = dict(zip(paths, sort_keys(pair.oracle, case, paths), strict=True))
    if "UUIDIndex" in {pair.oracle._catalog.indexes[name].meta_type for name in names} and expected.paths & duplicates(
        pair
    ):
        expected.correct("uuid-duplicates")
        expected.paths = {path for path, key in keyed.items() if None not in key or path in with_second_uuid(pair)}
        return None
    types = [pair.oracle._catalog.indexes[name].meta_type for name in names]
    needed = 1 if page_of(case, 1 << 60) == range(1 << 60) and types[0] != "GopipIndex" else len(names)
    keyed = {path: key for path, key in keyed.items() if None not in key[:needed]}
    expected.paths = set(keyed)
    reverse = directions(case, len(names))
    if "DateIndex" in types:
        length = types.index("DateIndex") + 1
        if length < len(names):
            expected.correct("date-resolution")
        reverse = reverse[:length]
    keys = [key[: len(reverse)] for key in keyed.values()]
    for at in reversed(range(len(reverse))):
        keys.sort(key=lambda key: orderable(key[at]), reverse=reverse[at])
    return keys


def orderable(value: Any) -> Any:
    """Return *value* with None, even in a pair, replaced by a key that comes first."""
    if isinstance(value, tuple):
        return (1, tuple(orderable(v) for v in value))
    return (0,) if value is None else (1, value)


def page_of(case: Case, total: int) -> range:
    query = case.query
    start, size = int(query.get("b_start", 0)), query.get("b_size")
    limit = query.get("sort-limit", query.get("sort_limit")) if size is None else size
    if limit is None or (size is None and not limit):
        return range(total)
    return range(total)[start : start + int(limit)]


def name_sorting(pair: Pair, case: Case, theirs: Answer) -> list[str]:
    """Return the deviations of sorting and cutting that may affect *case*."""
    names, found = effective_sort(pair, case), []
    if not names:
        return ["sort-empty"] if type(theirs.error) is IndexError and has_sort(case) else []
    order = case.query.get("sort-order", case.query.get("sort_order"))
    if isinstance(order, list | tuple) and len(order) != len(names) and case.method != "search":
        found.append("sort-orders")
    types = {pair.oracle._catalog.indexes[name].meta_type for name in names}
    if types & {"KeywordIndex", "DateRecurringIndex"}:
        found.append("sort-multiple")
    if "DateRangeIndex" in types:
        found.append("sort-range")
    if "GopipIndex" in types and type(theirs.error) is ValueError:
        found.append("position-vanished")
    rows = ask_as(pair, unsorted(case)).paths
    keys = sort_keys(pair.oracle, case, rows)
    if any(None in key[1:] for key in keys):
        found.append("sort-missing")
    if any(key[0] is None for key in keys):
        found.append("count-of-sorted")
    if is_window(case) and any(None in key for key in keys):
        found.append("window-of-sorted")
    if "b_start" in case.query and "b_size" not in case.query:
        found.append("start-and-limit")
    if type(theirs.error) is TypeError and str(case.query.get("b_size")) == "0":
        found.append("limit-zero")
    return found


SORTING = ("sort_on", "sort-on", "sort_order", "sort-order")


def has_sort(case: Case) -> bool:
    return "sort_on" in case.query or "sort-on" in case.query


def unsorted(case: Case) -> Case:
    """Return *case* without sorting and window."""
    for key in SORTING:
        case = case.without(key)
    return whole(case)


def ask_as(pair: Pair, case: Case) -> Answer:
    with pair.acting_as(case.user):
        return ask(pair.oracle, case)
