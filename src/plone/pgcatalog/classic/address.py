"""The address of a search page: what was asked for, as parameters that a link or a bookmark can have."""

from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from typing import Self
from urllib.parse import parse_qsl
from urllib.parse import urlencode


Pair = tuple[str, str]


def plain(name: str) -> str:
    """Return the *name* of a parameter without what Zope shall make of its value (``portal_type:list``)."""
    return name.partition(":")[0]


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

    def __str__(self) -> str:
        return f"{self.url}?{urlencode(self.pairs)}" if self.pairs else self.url

    def _kept(self, is_kept: Callable[[Pair], bool]) -> Self:
        return type(self)(self.url, tuple(filter(is_kept, self.pairs)))
