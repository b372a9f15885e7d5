"""Pages by a cursor: each starts after the last row of the one before, whatever is saved meanwhile.

A cursor contains the sort keys of that row.  They are encrypted, and authenticated together with their search, by the
site's secrets (plone.keyring).  So a client can neither read nor forge them, and the row may change or be deleted.

The seal is an HMAC of the keys; the key stream that encrypts them is derived from it (a synthetic IV, as in RFC 5297).
"""

from base64 import b64decode
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import shake_256
from plone.keyring.interfaces import IKeyManager
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.stream import BrainStream
from plone.pgcatalog.results.stream import SortKeys
from typing import Any
from zExceptions import BadRequest
from zope.component import getUtility

import hmac
import json


#: The cursor of the first page, as in Solr.
START = "*"
#: Length in bytes of a seal, an HMAC with SHA-256.
SEAL_BYTES = 32
NEEDS_ORDER = "a cursor needs a stable order, such as sort=modified desc; use start for pages by relevance"


def page_behind(
    cursor: str, results: CatalogSearchResults, query: Mapping[str, Any], rows: int
) -> tuple[list[Any], str | None]:
    """Return up to *rows* brains of *results* after *cursor*, and the cursor of the next page, None after the last one.

    *results*, without a limit, are those of the query dict *query*.  Raises BadRequest for a cursor of another search, for
    an order by relevance, which has no sort keys, and for less than one row.
    """
    compiled = results.compiled
    if rows < 1:
        raise BadRequest("with a cursor, rows must be at least 1")
    if compiled.score is not None:
        raise BadRequest(NEEDS_ORDER)
    order = [(term.expression, term.type, term.descending) for term in compiled.order]
    search = repr((sorted(query.items()), order, compiled.python_sort)).encode("utf-8", "surrogatepass")
    after = None if cursor == START else _keys_of(cursor, search)
    with bad_values():
        stream = BrainStream(results.catalog, compiled, rows, after, results.catalog.search_view())
    brains = list(stream.batch())
    return brains, _cursor(stream.keys(), search) if len(brains) == rows else None


def _cursor(keys: SortKeys, search: bytes) -> str:
    content, secret = json.dumps(list(keys)).encode(), _secrets()[0]
    seal = _seal(secret, content, search)
    return urlsafe_b64encode(seal + _masked(secret, seal, content)).decode()


def _keys_of(cursor: str, search: bytes) -> SortKeys:
    """Return the keys in *cursor*, which this site has sealed.  Raises BadRequest for any other text."""
    try:
        sealed = b64decode(cursor, altchars=b"-_", validate=True)
    except ValueError:
        sealed = b""
    seal, hidden = sealed[:SEAL_BYTES], sealed[SEAL_BYTES:]
    for secret in _secrets():
        content = _masked(secret, seal, hidden)
        if hmac.compare_digest(seal, _seal(secret, content, search)):
            keys: SortKeys = json.loads(content)
            return keys
    raise BadRequest(f"the cursor belongs to another search; use {START} to begin again")


def _seal(secret: bytes, content: bytes, search: bytes) -> bytes:
    return hmac.digest(secret, b"\0".join((b"@pgsearch", content, search)), "sha256")


def _masked(secret: bytes, seal: bytes, content: bytes) -> bytes:
    """Return *content* encrypted, or decrypted, by XOR with the key stream of *secret* and *seal*."""
    stream = shake_256(hmac.digest(secret, b"@pgsearch stream\0" + seal, "sha256")).digest(len(content))
    return bytes(byte ^ other for byte, other in zip(content, stream, strict=True))


def _secrets() -> list[bytes]:
    """Return the site's secrets, the newest first; plone.keyring stores former ones for a while."""
    return [str(secret).encode() for secret in getUtility(IKeyManager)["_system"] if secret]
