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
    """Put everything into *namespace* that *cls* has and that neither *namespace* nor one of *bases* gives.

    What *cls* itself overrides of a base is taken too.  A method that a new Plone release adds to its catalog
    tool is there at once.
    """
    inherited = {base for b in bases for base in b.__mro__}
    for name in dir(cls):
        special = name.startswith("__") or name.startswith("_p_")
        owner = next((base for base in cls.__mro__ if name in base.__dict__), None)
        if not special and name not in namespace and owner not in inherited:
            borrow(namespace, cls, name)
