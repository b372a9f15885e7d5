"""Numbers as text that sorts as they do: exact for any mixture of int, float and Decimal.

A number is ``±0.d1d2d3... × 10^exponent`` with d1 not 0 and no zeros at the end, so that equal numbers
have one form.  Its text is the sign (``<``, ``=``, ``>``), the exponent and the digits; of a negative number
every part is mirrored.  42 is ``>a242``: positive, one digit of exponent, which is 2, digits 42.
"""

from decimal import Decimal


#: Integral numbers up to this power of ten are decoded to int, beyond to Decimal:
#: 1E+999999999 is a short key, but an int of 400 MB.
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
    """A letter for sign and length, a..z upwards from 0, Z..A downwards, and the digits."""
    digits = str(abs(exponent))
    if exponent >= 0:
        return chr(ord("a") + len(digits) - 1) + digits
    return chr(ord("Z") - len(digits) + 1) + digits.translate(_MIRROR)


def _decode_exponent(text: str) -> tuple[int, str]:
    """Return the exponent *text* begins with, and the rest."""
    if text[0] >= "a":
        end = ord(text[0]) - ord("a") + 2
        return int(text[1:end]), text[end:]
    end = ord("Z") - ord(text[0]) + 2
    return -int(text[1:end].translate(_MIRROR)), text[end:]
