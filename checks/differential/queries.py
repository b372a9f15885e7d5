"""Random queries over every index and every documented option."""

from checks.differential.query_values import QueryValues
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace
from DateTime import DateTime
from datetime import date
from random import Random
from tests.property import content
from typing import Any


#: Ways to call a query: the method's name, and whether the query is one dict or keywords.
METHODS = (
    *("unrestrictedSearchResults",) * 5,
    *("searchResults", "searchResults dict", "__call__", "__call__ dict", "search"),
)
#: Relative frequency of criteria, by the type of the index.
WEIGHTS = {"KeywordIndex": 4, "ExtendedPathIndex": 8, "ZCTextIndex": 4, "DateIndex": 2, "DateRecurringIndex": 3}
SORT_ORDERS = (
    *("ascending", "descending", "reverse", "DESCENDING", "Reverse", "", "odd", None),
    *(["descending"], ["ascending", "descending"], ["reverse", "", "reverse"], ("descending", "")),
)


@dataclass(frozen=True)
class Case:
    """A query, its user and its method."""

    query: dict[str, Any]
    method: str = "unrestrictedSearchResults"
    user: str = "admin"

    def without(self, key: str) -> "Case":
        return replace(self, query={k: v for k, v in self.query.items() if k != key})

    def with_value(self, key: str, value: Any) -> "Case":
        return replace(self, query=self.query | {key: value})

    @property
    def restricted(self) -> bool:
        return self.method != "unrestrictedSearchResults"

    def ask(self, catalog: Any) -> Any:
        """Return the answer of *catalog*."""
        name, _, as_dict = self.method.partition(" ")
        query = dict(self.query)
        if name == "search":
            sort_on, order = query.pop("sort_on", None), query.pop("sort_order", None)
            return catalog.search(query, sort_on, order == "descending", query.pop("sort_limit", None))
        method = getattr(catalog, name)
        return method(query) if as_dict else method(**{str(k): v for k, v in query.items()})


class QueryMaker:
    """Generates random cases from *values*, samples of the indexes' values."""

    def __init__(self, random: Random, values: QueryValues) -> None:
        self.random = random
        self.values = values
        self.weighted = [n for n in values.names for _ in range(WEIGHTS.get(values.meta_types[n], 1))]
        self.kinds: dict[str, Callable[[str], Any]] = {
            "BooleanIndex": self.boolean,
            "DateIndex": self.unindex,
            "DateRangeIndex": self.plain,
            "DateRecurringIndex": self.unindex,
            "ExtendedPathIndex": self.path,
            "FieldIndex": self.unindex,
            "GopipIndex": self.plain,
            "KeywordIndex": self.unindex,
            "PathIndex": self.path,
            "UUIDIndex": self.unindex,
            "ZCTextIndex": self.text,
        }

    def case(self, within: str = "") -> Case:
        """Return a random case, often below the path *within*."""
        random = self.random
        query: dict[str, Any] = {}
        for name in random.sample(self.weighted, random.choice((0, *(1,) * 7, 2, 2, 3))):
            query |= self.criterion(name)
        if within and random.random() < 0.6:
            query["path"] = {"query": within, "depth": random.choice((-1, 0, 1, 2))}
        if random.random() < 0.03:
            query["no such index"] = 1
        if random.random() < 0.5:
            query |= self.sorting()
        if random.random() < 0.35:
            query |= self.window()
        method = random.choice(METHODS)
        user = random.choice(content.USERS) if method != "unrestrictedSearchResults" else "admin"
        if method == "search":  # accepts one name as an argument, and no other sorting
            query = {k: v for k, v in query.items() if not k.startswith("sort-")}
            if not isinstance(query.get("sort_on", ""), str):
                del query["sort_on"]
        return Case(query, method, user)

    def criterion(self, name: str) -> dict[str, Any]:
        """Return keys for the index *name*: its criterion, sometimes as old-style options."""
        value = self.kinds[self.values.meta_types[name]](name)
        if isinstance(value, dict) and "query" in value and self.random.random() < 0.15:
            old = {f"{name}_{option}": v for option, v in value.items() if option not in ("query", "range")}
            if "range" in value:
                usage = self.random.random() < 0.5
                old[f"{name}_usage" if usage else f"{name}_range"] = ("range:" if usage else "") + value["range"]
            return {name: value["query"], **old}
        return {name: value}

    def one_or_more(self, name: str, most: int = 3) -> Any:
        """Return a value as scalar, list or tuple."""
        random = self.random
        if random.random() < 0.5:
            return self.values.value(random, name)
        some = [self.values.value(random, name) for _ in range(random.randint(0 if random.random() < 0.1 else 1, most))]
        return tuple(some) if random.random() < 0.3 else some

    def plain(self, name: str) -> Any:
        return self.one_or_more(name) if self.random.random() < 0.7 else {"query": self.one_or_more(name)}

    def boolean(self, name: str) -> Any:
        value = self.random.choice((True, False, 0, 1, "", "True", [False], [True], [True, False], None, (0,), []))
        return value if self.random.random() < 0.7 else {"query": value}

    def unindex(self, name: str) -> Any:
        """Return a criterion in the dialect of UnIndex: values, range, not, operator."""
        random = self.random
        if random.random() < 0.35:
            return self.one_or_more(name)
        options: dict[str, Any] = {}
        if random.random() < 0.85:
            options["query"] = self.one_or_more(name)
        if random.random() < 0.35 or "query" not in options:
            options["not"] = self.one_or_more(name, 2)
        elif random.random() < 0.6:
            options["range"] = random.choice(("min", "max", "min:max", "minmax", "max:min"))
            if options["range"] not in ("min", "max") and random.random() < 0.8:
                options["query"] = [self.values.value(random, name) for _ in range(2)]
        many = self.values.meta_types[name] == "KeywordIndex"
        if random.random() < (0.5 if many else 0.15):
            options["operator"] = random.choice(
                ("and", "and", "or", "AND", "Or", "xor" if random.random() < 0.1 else "or")
            )
        if random.random() < 0.02:
            options["odd option"] = 1
        return options

    def path(self, name: str) -> Any:
        random = self.random
        query: Any = self.values.path(random)
        if random.random() < 0.3:
            query = [self.values.path(random) for _ in range(random.randint(0, 3))]
        if random.random() < 0.3:
            return query
        options: dict[str, Any] = {"query": query} if random.random() < 0.97 else {}
        if random.random() < 0.3:
            options["level"] = random.choice((-1, 0, 1, 2, 3))
        if random.random() < 0.1:
            options["operator"] = random.choice(("and", "or"))
        if self.values.meta_types[name] == "ExtendedPathIndex":
            if random.random() < 0.7:
                options["depth"] = random.choice((-1, 0, 1, 1, 2, 3, 10))
            if random.random() < 0.25:
                options["navtree"] = random.choice((True, 1, False))
                if random.random() < 0.5:
                    options["navtree_start"] = random.choice((0, 1, 2, 3))
        return options

    def text(self, name: str) -> Any:
        text = self.expression(self.random.randint(0, 2))
        return text if self.random.random() < 0.8 else {"query": text}

    def expression(self, levels: int) -> str:
        """Return a text query: words, phrases, wildcards, operators, parentheses; rarely a broken one."""
        random = self.random
        word = random.choice(content.WORDS)
        if levels == 0:
            kind = random.random()
            if kind < 0.15:
                return f'"{word} {random.choice(content.WORDS)}"'
            if kind < 0.3:
                return word[: random.randint(1, 4)] + "*"
            if kind < 0.35:
                return word[:2] + "?" + word[3:]
            return word if kind < 0.98 else random.choice(("", "*", "(", "foo AND", "NOT x", '"', "and", "?a"))
        parts = [self.expression(levels - 1) for _ in range(random.randint(2, 3))]
        joined = random.choice((" AND ", " OR ", " AND NOT ", " ", " and ", " or ")).join(parts)
        return f"({joined})" if random.random() < 0.5 else joined

    def sorting(self) -> dict[str, Any]:
        random = self.random
        names = [random.choice(self.values.names) for _ in range(random.choice((1, 1, 1, 2, 3)))]
        if random.random() < 0.9:
            names = [n for n in names if self.values.meta_types[n] in self.values.SORTABLE] or ["getId"]
        sort_on: Any = names[0] if len(names) == 1 and random.random() < 0.8 else names
        if random.random() < 0.03:
            sort_on = random.choice(("nobody", ["nobody", "getId"], "", [], None, ("getId", "portal_type")))
        found: dict[str, Any] = {random.choice(("sort_on",) * 9 + ("sort-on",)): sort_on}
        if random.random() < 0.6:
            found[random.choice(("sort_order",) * 9 + ("sort-order",))] = random.choice(SORT_ORDERS)
        if "sort-on" in found and random.random() < 0.5:
            found["sort_on"] = found.pop("sort-on")
        return found

    def window(self) -> dict[str, Any]:
        random = self.random
        found: dict[str, Any] = {}
        if random.random() < 0.5:
            found["sort_limit"] = random.choice((1, 2, 3, 5, 10, 40, 1000))
        if random.random() < 0.7:
            found["b_size"] = random.choice((0, 1, 2, 5, 10, 30, "3", 500))
        if random.random() < 0.6:
            found["b_start"] = random.choice((0, 0, 1, 2, 5, 10, 30, 60, "2", 1000))
        return found


def some_query_date(random: Random) -> Any:
    """Return a moment in one of the types that date indexes accept."""
    instant = content.some_instant(random)
    return random.choice(
        (
            DateTime(instant),
            DateTime(instant),
            instant,
            instant.replace(tzinfo=None),
            date(instant.year, instant.month, instant.day),
            DateTime(instant).ISO8601(),
            DateTime(instant).strftime("%Y/%m/%d"),
        )
    )
