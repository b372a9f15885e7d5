"""Inheriting from Products.ZCatalog: what others patch on its classes is asked, by our classes as by its own.

The tool and its inside inherit from the classes of the installed release, so what they do not override is looked up at
each access, whenever it was patched or added.  ``Around`` and ``lend`` do the same for what they do override: ours
answers as long as the inherited one is as its release made it.  What a patch cannot change is in ``NOT_ASKED``.
"""

from collections.abc import Callable
from collections.abc import Iterator
from functools import wraps
from inspect import getclosurevars
from itertools import chain
from pathlib import Path
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCatalog.Catalog import Catalog
from Products.ZCatalog.plan import CatalogPlan
from types import FunctionType
from typing import Any

import logging
import sys


logger = logging.getLogger(__name__)

_PLAN = "the database plans queries"
_SORT = "the database sorts, limits and counts"
_BRAINS = "results make their brains of rows; calls of it are honoured"
_METADATA = "metadata is taken together with the indexes' values; calls of it are honoured"
_OURS = "the tool has its own"
_MADE = "objects are made by a constructor of ours"

#: What a patch of changes no search and no save, on the class or one of its bases: class -> name -> why.
NOT_ASKED: dict[type, dict[str, str]] = {
    CatalogTool: {
        "Indexes": _OURS,
        "__init__": _MADE,
        "_counter": _OURS,
        "long_query_time": "it is a setting of the site",
        "manage_options": _OURS,
        "meta_type": _OURS,
    },
    Catalog: {
        "__getitem__": _BRAINS,
        "__init__": _MADE,
        "__setstate__": "nothing of it is stored",
        "_get_index_query_names": _PLAN,
        "_limit_sequence": _SORT,
        "_maintain_zodb_cache": _BRAINS,
        "_search_index": _PLAN,
        "_sort_iterate_index": _SORT,
        "_sort_iterate_resultset": _SORT,
        "_sort_limit_arguments": _SORT,
        "_sort_nbest": _SORT,
        "_sort_nbest_reverse": _SORT,
        "_sorted_search_indexes": _PLAN,
        "_v_brains": "it is the tool's own, `useBrains` sets it",
        "getCatalogPlan": _PLAN,
        "getIndex": "searches and saves ask the settings of the indexes; calls of it are honoured",
        "instantiate": _BRAINS,
        "recordify": _METADATA,
        "sortResults": f"{_SORT}; calls of it are honoured",
        "updateBrains": _BRAINS,
        "updateMetadata": _METADATA,
        "useBrains": _BRAINS,
    },
    CatalogPlan: dict.fromkeys(("plan", "start", "start_split", "stop", "stop_split"), _PLAN),
}


def inherited(cls: type, name: str) -> Any:
    """Return (base, what it has) for the first base class of *cls* that has the attribute *name*; raises AttributeError."""
    for base in cls.__mro__[1:]:
        if name in base.__dict__:
            return base, base.__dict__[name]
    raise AttributeError(f"no base class of {cls.__name__} has {name}")


def is_stock(base: type, name: str, value: Any) -> bool:
    """True unless *value* is somebody's patch of the attribute *name* of *base*.

    Of functions it is their code that tells, and of pages their file, so it does not matter when the patch was made.
    """
    module = vars(sys.modules[base.__module__])
    if isinstance(value, FunctionType):
        by_release = value.__globals__ is module and value.__code__.co_qualname.startswith(f"{base.__name__}.")
        return by_release or value.__globals__ is globals()
    file = getattr(value, "raw", None) or getattr(value, "filename", None)
    if isinstance(file, str):
        return Path(file).is_relative_to(Path(module["__file__"]).parent)
    return _remembered.get((base, name), _remembered) is value


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


def lend(cls: type, stock: type) -> None:
    """Have the functions of *stock* that its subclass *cls* overrides answer instances of *cls* by these.

    So a patch of *stock* is asked, and what it calls for the original, by whatever name it has kept it, is ours.  A patch
    that was made before, and that has kept the very function of the release elsewhere than on the class, is not asked:
    that function would not find its BTrees.
    """
    ours = {name: f for name, f in vars(cls).items() if isinstance(f, FunctionType) and name != "__init__"}
    for name, value in list(vars(stock).items()):
        if isinstance(value, FunctionType) and is_stock(stock, name, value):
            answer = ours.get(value.__code__.co_qualname.removeprefix(f"{stock.__name__}."))
            if answer is not None:
                setattr(stock, name, _lent(cls, answer, value))
    for name in ours:
        value = vars(stock).get(name)
        if value is None:
            continue
        if is_stock(stock, name, value) or not _keeps_original(stock, value):
            delattr(cls, name)
        else:
            NOT_ASKED[stock][name] = "it was patched before plone.pgcatalog was imported, and has kept the original"


def _lent(cls: type, ours: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def method(self: Any, *args: Any, **kw: Any) -> Any:
        return (ours if isinstance(self, cls) else original)(self, *args, **kw)

    return method


def _keeps_original(stock: type, patch: Any) -> bool:
    """True if the function *patch* refers to a function of *stock*, as its release made it, by a variable or a default."""
    if not isinstance(patch, FunctionType):
        return True
    found = getclosurevars(patch)
    values = chain(found.nonlocals.values(), found.globals.values(), patch.__defaults__ or ())
    return any(isinstance(v, FunctionType) and is_stock(stock, v.__name__, v) for v in values)


def patches_not_asked() -> list[tuple[str, str, str]]:
    """Return (what is patched, the module that has patched it, why that changes nothing) of all patches in this process."""
    found = []
    for base, name, value, reason in _not_asked():
        if not is_stock(base, name, value):
            module = getattr(value, "__globals__", {}).get("__name__", "unknown code")
            found.append((f"{base.__module__}.{base.__name__}.{name}", module, reason))
    return found


def _not_asked() -> Iterator[tuple[type, str, Any, str]]:
    """Generate (class, name, what it has, reason) of what is there of ``NOT_ASKED``."""
    for cls, reasons in NOT_ASKED.items():
        for base in cls.__mro__:
            if base.__module__.startswith("Products."):
                yield from ((base, n, vars(base)[n], reason) for n, reason in reasons.items() if n in vars(base))


def log_patches() -> None:
    """Log each patch of this process that changes nothing, once, with the module that has made it."""
    for patched, module, reason in patches_not_asked():
        if patched not in _logged:
            _logged.add(patched)
            logger.warning("%s is patched by %s; plone.pgcatalog does not ask it: %s", patched, module, reason)


#: What is already logged.
_logged: set[str] = set()
#: Attributes that are neither functions nor pages, as they were when this was imported.
_remembered = {(base, name): value for base, name, value, _ in _not_asked() if not isinstance(value, FunctionType)}
