"""Patches of the classes this package inherits from: found, and applied to our own classes as to theirs.

What our classes do not override is looked up at each access, whenever it was patched or added.  ``Around`` and ``dispatch``
do the same for what they do override: ours answers as long as the inherited one is as its release made it.
"""

from collections.abc import Callable
from collections.abc import Iterable
from functools import wraps
from inspect import getclosurevars
from itertools import chain
from pathlib import Path
from types import FunctionType
from typing import Any

import sys


#: Attributes of stock classes that are neither functions nor pages, as they were at first: (class, name) -> value.
REMEMBERED: dict[tuple[type, str], Any] = {}


def inherited(cls: type, name: str) -> Any:
    """Return (base, what it has) for the first base class of *cls* that has the attribute *name*; raises AttributeError."""
    for base in cls.__mro__[1:]:
        if name in base.__dict__:
            return base, base.__dict__[name]
    raise AttributeError(f"no base class of {cls.__name__} has {name}")


def is_stock(base: type, name: str, value: Any) -> bool:
    """Return whether *value* is the attribute *name* of *base* as its release made it, and no patch.

    Functions are recognized by their code and pages by their file, so it does not matter when a patch was made.
    """
    module = vars(sys.modules[base.__module__])
    if isinstance(value, FunctionType):
        by_release = value.__globals__ is module and value.__code__.co_qualname.startswith(f"{base.__name__}.")
        return by_release or value.__globals__ is globals()
    file = getattr(value, "raw", None) or getattr(value, "filename", None)
    if isinstance(file, str):
        return Path(file).is_relative_to(Path(module["__file__"]).parent)
    return REMEMBERED.get((base, name), REMEMBERED) is value


def is_patched(cls: type, name: str) -> bool:
    """Return whether the method *name* that instances of *cls* have is a patch."""
    base, value = next((base, vars(base)[name]) for base in cls.__mro__ if name in vars(base))
    return not is_stock(base, name, value)


class Around:
    """An attribute made of the inherited one of the same name, whatever that is at the time of an access.

    *make* gets the inherited attribute, and whether it is as its release made it; what it returns is kept as long as the
    attribute stays the same.
    """

    def __init__(self, make: Callable[[Any, bool], Any]) -> None:
        self._make = make
        #: the inherited attribute, and what was made of it
        self._attribute: tuple[Any, Any] = (self, None)

    def __set_name__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: Any, cls: type | None = None) -> Any:
        base, value = inherited(self._cls, self._name)
        former, attribute = self._attribute
        if former is not value:
            attribute = self._make(value, is_stock(base, self._name, value))
            self._attribute = (value, attribute)
        if hasattr(attribute, "__of__"):
            return attribute if instance is None else attribute.__of__(instance)
        return attribute.__get__(instance, cls)


def unless_patched(method: Callable[..., Any]) -> Any:
    """Let *method* answer in place of the inherited one, unless that is patched."""
    return Around(lambda value, stock: method if stock else value)


def dispatch(cls: type, stock: type, names: Iterable[str] = ()) -> set[str]:
    """Replace each method of *stock* that *cls* overrides by one that calls ours for instances of *cls*; return failures.

    So a patch of *stock* is called, and what it calls for the original, by whatever name it has kept it, is ours.  A patch
    that was made before, and that has kept the stock function elsewhere than on the class, is not called: the stock
    function does not work on instances of *cls*.  Its name is returned.

    With *names*, the stock functions do work, only slower: then these methods are replaced, and *cls* keeps its own.
    """
    all_names = set(names) or vars(cls).keys() - {"__init__"}
    ours = {name: f for name, f in vars(cls).items() if name in all_names and isinstance(f, FunctionType)}
    failures = set()
    for name, value in list(vars(stock).items()):
        if isinstance(value, FunctionType) and is_stock(stock, name, value):
            answer = ours.get(value.__code__.co_qualname.removeprefix(f"{stock.__name__}."))
            if answer is not None:
                setattr(stock, name, _dispatching(cls, answer, value))
    for name in () if names else ours:
        value = vars(stock).get(name)
        if value is None:
            continue
        if is_stock(stock, name, value) or not _keeps_original(stock, value):
            delattr(cls, name)
        else:
            failures.add(name)
    return failures


def _dispatching(cls: type, ours: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def method(self: Any, *args: Any, **kw: Any) -> Any:
        return (ours if isinstance(self, cls) else original)(self, *args, **kw)

    return method


def _keeps_original(stock: type, patch: Any) -> bool:
    """Return whether the function *patch* refers to a stock function of *stock* by a variable or a default."""
    if not isinstance(patch, FunctionType):
        return True
    found = getclosurevars(patch)
    values = chain(found.nonlocals.values(), found.globals.values(), patch.__defaults__ or ())
    return any(isinstance(v, FunctionType) and is_stock(stock, v.__name__, v) for v in values)
