"""The codec of the storage without this package, and the numbers of JSONB."""

from decimal import Decimal
from plone.pgcatalog.storage.records import preserve_values

import zodb_json_codec


preserve_values()
DECODE = zodb_json_codec.decode_zodb_record_for_pg_json.__wrapped__
ENCODE = zodb_json_codec.encode_zodb_record.__wrapped__


def number(text: str) -> float | int:
    """Return a number as JSONB stores it: exact, without an exponent, and without a sign if it is 0."""
    plain = f"{Decimal(text):f}"
    return (float(plain) or 0.0) if "." in plain else int(plain)
