"""Finds patches of the classes that this package inherits from, and applies them to our subclasses, too.

An inherited attribute is looked up at each access, so it does not matter when it was patched.  ``Around`` and ``dispatch``
do the same for overridden attributes: ours is used as long as the inherited one is unpatched.
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


#: Original values of attributes of stock classes that are neither functions nor pages: (class, name) -> value.
ORIGINAL_VALUES: dict[tuple[type, str], Any] = {}


def inherited(cls: type, name: str) -> Any:
    """Return (base, value) of the attribute *name* in the first base class of *cls* that has it; raises AttributeError."""
    for base in cls.__mro__[1:]:
        if name in base.__dict__:
            return base, base.__dict__[name]
    raise AttributeError(f"no base class of {cls.__name__} has {name}")


def is_stock(base: type, name: str, value: Any) -> bool:
    """Return True if *value* is the attribute *name* of *base* as it was released, and no patch.

    Functions are recognized by their code and pages by their file, so it does not matter when a patch was made.
    """
    module = vars(sys.modules[base.__module__])
    if isinstance(value, FunctionType):
        by_release = value.__globals__ is module and value.__code__.co_qualname.startswith(f"{base.__name__}.")
        return by_release or value.__globals__ is globals()
    file = getattr(value, "raw", None) or getattr(value, "filename", None)
    if isinstance(file, str):
        return Path(file).is_relative_to(Path(module["__file__"]).parent)
    return ORIGINAL_VALUES.get((base, name), ORIGINAL_VALUES) is value


def is_patched(cls: type, name: str) -> bool:
    """Return True if the method *name* of instances of *cls* is a patch."""
    base, value = next((base, vars(base)[name]) for base in cls.__mro__ if name in vars(base))
    return not is_stock(base, name, value)


class Around:
    """Descriptor for an attribute that is derived, at each access, from the inherited one of the same name.

    *derive* receives the inherited attribute, and True if it is unpatched.  Its result is cached until the inherited
    attribute changes.
    """

    def __init__(self, derive: Callable[[Any, bool], Any]) -> None:
        self._derive = derive
        #: the inherited attribute, and the result of *derive* for it
        self._attribute: tuple[Any, Any] = (self, None)

    def __set_name__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: Any, cls: type | None = None) -> Any:
        base, value = inherited(self._cls, self._name)
        former, attribute = self._attribute
        if former is not value:
            attribute = self._derive(value, is_stock(base, self._name, value))
            self._attribute = (value, attribute)
        if hasattr(attribute, "__of__"):
            return attribute if instance is None else attribute.__of__(instance)
        return attribute.__get__(instance, cls)


def unless_patched(method: Callable[..., Any]) -> Any:
    """Return a descriptor for *method* that is the inherited method instead, if that is patched."""
    return Around(lambda value, stock: method if stock else value)


def dispatch(cls: type, stock: type, names: Iterable[str] = ()) -> set[str]:
    """Replace each method of *stock* that *cls* overrides by one that calls ours for instances of *cls*; return failures.

    - A later patch of *stock* is called for instances of *cls*, and calls ours as the original, under any name.
    - An earlier patch that stored the stock function outside the class is not called, since the stock function does not
      work on instances of *cls*.  The name of its method is in the result.
    - With *names*, only these methods are replaced, and they stay on *cls*, too: here stock functions work, but slower.
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
        if is_stock(stock, name, value) or not _refers_to_original(stock, value):
            delattr(cls, name)
        else:
            failures.add(name)
    return failures


def _dispatching(cls: type, ours: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def method(self: Any, *args: Any, **kw: Any) -> Any:
        return (ours if isinstance(self, cls) else original)(self, *args, **kw)

    return method


def _refers_to_original(stock: type, patch: Any) -> bool:
    """Return True if the function *patch* refers to a stock function of *stock* by a variable or a default."""
    if not isinstance(patch, FunctionType):
        return True
    found = getclosurevars(patch)
    values = chain(found.nonlocals.values(), found.globals.values(), patch.__defaults__ or ())
    return any(isinstance(v, FunctionType) and is_stock(stock, v.__name__, v) for v in values)
