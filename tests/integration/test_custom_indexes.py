"""x"""
from typing import Any
import pytest

def make_index(cls: type, catalog: Any) -> Any:
    """Return a new index of type *cls*, named like its class."""
    name = f"of_type_{cls.__name__}"
    class Extra: pass
    extra = Extra()
    extra.since_field, extra.until_field = "effective", "expires"
    extra.lexicon_id, extra.index_type, extra.doc_attr = "plone_lexicon", "Okapi BM25 Rank", "Title"
    names = cls.__init__.__code__.co_varnames
    if cls.__name__ == "CompositeIndex":
        extra = [{"id": "portal_type", "meta_type": "FieldIndex", "attributes": "portal_type"}, {"id": "review_state", "meta_type": "FieldIndex", "attributes": "review_state"}]
    if "extra" in names:
        return cls(name, extra=extra, caller=catalog)
    return cls(name, caller=catalog) if "caller" in names else cls(name)
