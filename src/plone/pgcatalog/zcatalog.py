"""Borrowing from Products.ZCatalog and its subclasses: their functions, on our classes.

The tool does not inherit from ZCatalog (its BTrees are what we replace), but much of its code only talks to
``self._catalog`` and other public methods.  Taking the functions, with their security declarations, keeps
the behaviour of the installed release.
"""

from typing import Any


def borrow(namespace: dict[str, Any], cls: type, *names: str) -> None:
    """Put *cls*'s attributes *names*, and their ``__roles__``, into a class body's *namespace*."""
    for name in names:
        for base in cls.__mro__:
            if name in base.__dict__:
                namespace[name] = base.__dict__[name]
                break
        else:
            raise AttributeError(f"{cls.__name__} has no {name}")
        roles = f"{name}__roles__"
        for base in cls.__mro__:
            if roles in base.__dict__:
                namespace[roles] = base.__dict__[roles]
                break


def borrow_rest(namespace: dict[str, Any], cls: type, *bases: type) -> None:
    """Put everything into *namespace* that *cls* has, neither *namespace* nor one of *bases* does.

    A method that a new Plone release adds to its catalog tool is there at once.
    """
    for name in dir(cls):
        special = name.startswith("__") or name.startswith("_p_")
        if not special and not name.endswith("__roles__") and name not in namespace:
            if not any(hasattr(base, name) for base in bases):
                borrow(namespace, cls, name)
