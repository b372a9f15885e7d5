"""The address of a search page: what was asked for, as parameters that a link or a bookmark can have."""

from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from dataclasses import dataclass
from plone.pgcatalog.query.expression import LimitExceeded
from typing import Any
from typing import Self
from urllib.parse import parse_qsl
from urllib.parse import urlencode


Pair = tuple[str, str]

#: Characters of the parameters that a page knows, as they stand in an address: it repeats them in each of its links.
LONGEST = 16_000
#: Other parameters, and their characters, that it repeats.
MOST_OTHERS, LONGEST_OTHERS = 50, 2_000


def plain(name: str) -> str:
    """Return the *name* of a parameter without what Zope shall make of its value (``portal_type:list``)."""
    return name.partition(":")[0]


def record_of(name: str) -> str:
    """Return the *name* of a parameter without the part of a record that its value is (``created.query:record``)."""
    return plain(name).partition(".")[0]


@dataclass(frozen=True)
class Address:
    """The address *url* with its parameters, in their order."""

    url: str
    pairs: tuple[Pair, ...] = ()

    @classmethod
    def of(cls, request: Any) -> Self:
        """Return the address that *request* asked for."""
        return cls(request.URL, tuple(parse_qsl(request.get("QUERY_STRING", ""), keep_blank_values=True)))

    def without(self, *names: str) -> Self:
        """Return the address without the parameters *names*."""
        return self._kept(lambda pair: plain(pair[0]) not in names)

    def without_values(self, name: str, values: Iterable[str]) -> Self:
        """Return the address without *values* of the parameter *name*, of which it may have others."""
        left_out = set(values)
        return self._kept(lambda pair: plain(pair[0]) != name or pair[1] not in left_out)

    def having(self, name: str, value: str) -> Self:
        """Return the address with one parameter more."""
        return type(self)(self.url, (*self.pairs, (name, value)))

    def known(self, names: Container[str]) -> Self:
        """Return the address with the parameters *names*, and some of the others, for links to repeat.

        Raises LimitExceeded if the named ones are too long.
        """
        kept: list[Pair] = []
        others, room, length = MOST_OTHERS, LONGEST_OTHERS, 0
        for pair in self.pairs:
            size = len(urlencode([pair]))
            if plain(pair[0]) in names or record_of(pair[0]) in names:
                length += size
            elif others and size <= room:
                others, room = others - 1, room - size
            else:
                continue
            kept.append(pair)
        if length > LONGEST:
            raise LimitExceeded(f"the parameters of a search have more than {LONGEST:,} characters")
        return type(self)(self.url, tuple(kept))

    def __str__(self) -> str:
        return f"{self.url}?{urlencode(self.pairs)}" if self.pairs else self.url

    def _kept(self, is_kept: Callable[[Pair], bool]) -> Self:
        return type(self)(self.url, tuple(filter(is_kept, self.pairs)))
