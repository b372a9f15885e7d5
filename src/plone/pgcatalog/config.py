"""The catalog's settings as the tool keeps them: index objects without data."""

from BTrees.Length import Length
from typing import Any


#: What restricts a search; a caller's own value, or option of it, is never merged with ours.
RESTRICTIONS = ("allowedRolesAndUsers", "effectiveRange")
#: The text index whose texts are kept, too, to take snippets from; what a site tunes are its searches.
SOURCE_INDEX = "SearchableText"


def strip_data(index: Any) -> Any:
    """Return a copy of the ZCatalog *index* with its settings only: no BTrees, no counters.

    ``index.clear()`` makes it a working index again.
    """
    index._p_activate()
    cls: Any = type(index)
    copy = cls.__new__(cls)
    for name, value in index.__dict__.items():
        if not name.startswith("_v_") and not is_data(value):
            copy.__dict__[name] = value
    return copy


#: Where the classes live whose instances are data of an index: trees, inner indexes, the catalog it belongs to.
DATA_MODULES = ("BTrees.", "Products.ZCTextIndex.", "Products.ZCatalog.")


def is_data(value: Any) -> bool:
    """True for the objects that ZCatalog's indexes keep their data in."""
    return type(value).__module__.startswith(DATA_MODULES) or isinstance(value, Length)
