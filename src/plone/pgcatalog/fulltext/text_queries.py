"""The texts that a query searches for."""

from collections.abc import Mapping
from plone.pgcatalog.query.expression import expression_in
from typing import Any


def text_queries(criteria: Mapping[str, Any], texts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (index name, search text) of the text indexes *texts* that the query dict *criteria* names."""
    found = []
    for name in texts:
        value: Any = criteria.get(name)
        if not isinstance(value, str | list | tuple):
            value = value.get("query") if hasattr(value, "get") else None
        parts = [value] if isinstance(value, str) else value or ()
        found += [(name, " ".join(part for part in parts if isinstance(part, str)))]
    expression = expression_in(criteria)
    if expression is not None:
        found += [(name, text) for name, text in expression.texts() if name in texts]
    return [(name, text) for name, text in found if text.strip()]
