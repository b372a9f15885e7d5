r"""Encodes Python values as text that sorts and compares as the values do.

A FieldIndex or KeywordIndex holds any Python value; its SQL column is ``text COLLATE "C"``: PostgreSQL compares UTF-8
bytes, which is Python's order by code point.  :func:`encode_key` returns the key of a value, :func:`decode_key` the
value of a key.

The format, as psql shows it:

* a string is its own key (``news``), except for the escapes of NUL, ``\x01``, lone surrogates and U+E000; a string that
  is empty or begins with a character up to ``\x03`` is preceded by ``\x03``;
* any other value begins with ``\x02`` and a letter for its type, so it sorts before every string;
* a key longer than ``MAX_BYTES`` is cut and completed with ``\x01\x05`` and the SHA-256 of the whole key: equality
  stays exact, order and decoded value are those of its beginning.

Values of different types never have equal keys, except numbers among each other (``True == 1 == 1.0``).
"""

from collections.abc import Callable
from collections.abc import Sequence
from datetime import date
from datetime import datetime
from datetime import UTC
from DateTime.DateTime import DateTime
from decimal import Decimal
from functools import singledispatch
from typing import Any
from uuid import UUID

import hashlib
import re


# -- numbers: exact for any mixture of int, float and Decimal.  A number is ``±0.d1d2d3... × 10^exponent``, where d1 is
# not 0 and the last digit is not 0, so that equal numbers have one form.  Its text is the sign (``<``, ``=``, ``>``),
# the exponent and the digits; each part of a negative number is mirrored.  42 is ``>a242``: positive, an exponent of
# one digit, the exponent 2, the digits 42.

#: Integral numbers up to this power of ten are decoded to int, larger ones to Decimal: 1E+999999999 is a short key, but
#: an int of 400 MB.
MAX_INT_EXPONENT = 4300

_MIRROR = str.maketrans("0123456789", "9876543210")
_NEGATIVE_END = "~"  # higher than any digit: -0.123 sorts before -0.12
_INFINITY = ">~"
_MINUS_INFINITY = "<!"
_ZERO = "="


def encode_number(value: int | float | Decimal) -> str:
    """Return the text of *value*; raises ValueError for NaN."""
    number = Decimal(value)
    if number.is_nan():
        raise ValueError("not a number")
    if number.is_infinite():
        return _INFINITY if number > 0 else _MINUS_INFINITY
    if not number:
        return _ZERO
    sign, digits, last = number.as_tuple()
    assert isinstance(last, int)  # str only for NaN and infinity
    exponent = len(digits) + last
    text = "".join(map(str, digits)).rstrip("0")
    if sign:
        return "<" + _encode_exponent(-exponent) + text.translate(_MIRROR) + _NEGATIVE_END
    return ">" + _encode_exponent(exponent) + text


def decode_number(text: str) -> int | float | Decimal:
    """Return the number of *text*; missing digits at its end count as zeros."""
    if text in (_INFINITY, _MINUS_INFINITY):
        return float("inf") if text == _INFINITY else float("-inf")
    if text == _ZERO:
        return 0
    exponent, digits = _decode_exponent(text[1:])
    if text[0] == ">":
        return _number("", digits, exponent)
    return _number("-", digits.rstrip(_NEGATIVE_END).translate(_MIRROR), -exponent)


def _number(sign: str, digits: str, exponent: int) -> int | float | Decimal:
    power = exponent - len(digits)
    if power >= 0 and exponent <= MAX_INT_EXPONENT:
        integer: int = int(sign + digits) * 10**power
        return integer
    exact = Decimal(f"{sign}{digits}E{power}")
    inexact = float(exact)
    return inexact if inexact == exact else exact


def _encode_exponent(exponent: int) -> str:
    """Return a letter for sign and length, a..z upwards from 0, Z..A downwards, followed by the digits."""
    digits = str(abs(exponent))
    if exponent >= 0:
        return chr(ord("a") + len(digits) - 1) + digits
    return chr(ord("Z") - len(digits) + 1) + digits.translate(_MIRROR)


def _decode_exponent(text: str) -> tuple[int, str]:
    """Return the exponent at the beginning of *text*, and the rest of *text*."""
    if text[0] >= "a":
        end = ord(text[0]) - ord("a") + 2
        return int(text[1:end]), text[end:]
    end = ord("Z") - ord(text[0]) + 2
    return -int(text[1:end].translate(_MIRROR)), text[end:]


# -- keys

#: Longest key in bytes of UTF-8: a third of the maximum for a btree or GIN entry of PostgreSQL.
MAX_BYTES = 900
#: Deepest nesting of tuples and lists; a list may contain itself.
MAX_DEPTH = 16

_LEAD = "\x01"  # first character of every escape; the second one is never \x01
_END = "\x01\x02"  # after each element of a tuple or list: lower than any other character that may follow
_CUT = "\x01\x05"  # the key was longer
_TAG = "\x02"
_TEXT = "\x03"
_TAIL = len(_CUT) + 64
_HIGH = "\ue000"  # the first character after the surrogates, which UTF-8 cannot encode

_ESCAPES = {"\x00": "\x01\x03", _LEAD: "\x01\x04", _HIGH: _HIGH * 2}
_UNESCAPES = {escape: char for char, escape in _ESCAPES.items()}
_SPECIAL = re.compile("[\x00\x01\ud800-\udfff\ue000]")
_ESCAPED = re.compile("\x01[\x03\x04]|\ue000.", re.DOTALL)
_NESTED_LEAD = "\x01\x03"


class Unindexable(ValueError):
    """The value has no place in the order of values."""


def encode_key(value: Any) -> str | None:
    """Return the key of *value*, None for a value that cannot be indexed.

    NaN cannot, nor can any value of a type without a total order (dict, set) or of an unknown type.
    """
    try:
        key = _encode(value, 0)
    except Unindexable:
        return None
    return _limit(key)


def decode_key(key: str) -> Any:
    """Return the value of *key*; for a truncated key, the value of its beginning.

    Integral numbers are decoded to int, others to float or, where that is not exact, to Decimal; an aware datetime to
    UTC, an instance of a str subclass to str.
    """
    if is_truncated(key):
        key = key[:-_TAIL]
    if key.startswith(_TAG):
        return _DECODERS[key[1]](key[2:])
    return _unescape(key.removeprefix(_TEXT))


def is_truncated(key: str) -> bool:
    """Return True if *key* contains only the beginning of its value."""
    return key[-_TAIL:-64] == _CUT


def type_range(key: str) -> tuple[str, str | None]:
    """Return the half-open range of all keys of the type of *key*; None as its end means no end.

    Python refuses to compare values of different types, so a range must not find them.
    """
    if key.startswith(_TAG):
        return key[:2], _TAG + chr(ord(key[1]) + 1)
    return _TEXT, None


@singledispatch
def _encode(value: Any, depth: int) -> str:
    raise Unindexable(type(value).__name__)


@_encode.register
def _(value: str, depth: int) -> str:
    # str.__str__: an i18n Message or a StrEnum counts as the string it is.
    text = _escape(str.__str__(value))
    return text if text[:1] > _TEXT else _TEXT + text


@_encode.register
def _(value: None, depth: int) -> str:
    return _TAG + "0"


@_encode.register
def _(value: int | float | Decimal, depth: int) -> str:
    try:
        return _TAG + "n" + encode_number(value)
    except ValueError as error:
        raise Unindexable("NaN") from error


@_encode.register
def _(value: bytes, depth: int) -> str:
    return _TAG + "b" + _escape(value.decode("latin-1"))


@_encode.register
def _(value: UUID, depth: int) -> str:
    return _TAG + "u" + value.hex


@_encode.register
def _(value: date, depth: int) -> str:
    return _TAG + "d" + value.isoformat()


@_encode.register
def _(value: datetime, depth: int) -> str:
    if value.utcoffset() is None:
        return _TAG + "l" + _encode_naive(value)
    try:
        return _TAG + "i" + _encode_naive(value.astimezone(UTC))
    except OverflowError as error:
        raise Unindexable("before year 1 or after year 9999 in UTC") from error


@_encode.register
def _(value: DateTime, depth: int) -> str:
    # DateTimes are ordered by instant, and equal only if their zones are equal too.
    zone = _escape(value.timezone())
    return _TAG + "z" + encode_number(value.micros()) + _END + zone


@_encode.register
def _(value: tuple, depth: int) -> str:  # type: ignore[type-arg]
    return _TAG + "t" + _encode_items(value, depth)


@_encode.register
def _(value: list, depth: int) -> str:  # type: ignore[type-arg]
    return _TAG + "s" + _encode_items(value, depth)


def _encode_naive(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat(timespec="microseconds")


def _encode_items(items: Sequence[Any], depth: int) -> str:
    if depth == MAX_DEPTH:
        raise Unindexable("nested too deeply")
    keys = (_encode(item, depth + 1) for item in items)
    return "".join(key.replace(_LEAD, _NESTED_LEAD) + _END for key in keys)


def _decode_items(body: str) -> list[Any]:
    # The text after the last end mark belongs to a truncated element.
    keys = body.split(_END)[:-1]
    return [decode_key(key.replace(_NESTED_LEAD, _LEAD)) for key in keys]


def _decode_zope(body: str) -> DateTime:
    micros, zone = body.split(_END)
    value = DateTime(0)
    # As in unpickling: no other way preserves microseconds exactly.
    value.__setstate__((decode_number(micros), False, _unescape(zone)))
    return value


_DECODERS: dict[str, Callable[[str], Any]] = {
    "0": lambda body: None,
    "n": decode_number,
    "b": lambda body: _unescape(body).encode("latin-1"),
    "u": UUID,
    "d": date.fromisoformat,
    "l": datetime.fromisoformat,
    "i": lambda body: datetime.fromisoformat(body).replace(tzinfo=UTC),
    "z": _decode_zope,
    "t": lambda body: tuple(_decode_items(body)),
    "s": _decode_items,
}


def _limit(key: str) -> str:
    if len(key) * 4 <= MAX_BYTES:
        return key
    raw = key.encode()
    if len(raw) <= MAX_BYTES:
        return key
    head = raw[: MAX_BYTES - _TAIL].decode(errors="ignore").rstrip(_LEAD + _HIGH)
    return head + _CUT + hashlib.sha256(raw).hexdigest()


def _escape(text: str) -> str:
    return _SPECIAL.sub(_escape_char, text)


def _escape_char(match: re.Match[str]) -> str:
    char = match[0]
    # Surrogates sort before U+E000, so U+D800 becomes U+E000 U+1000, and U+E000 itself is doubled.
    return _ESCAPES.get(char) or _HIGH + chr(ord(char) - 0xD800 + 0x1000)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(_unescape_char, text)


def _unescape_char(match: re.Match[str]) -> str:
    escape = match[0]
    return _UNESCAPES.get(escape) or chr(ord(escape[1]) - 0x1000 + 0xD800)
