"""Numbers as a sheet shows them: dates, leading zeros, percentages and decimals, by the codes of their formats."""

from datetime import datetime
from datetime import timedelta
from functools import lru_cache
from math import isfinite

import re


#: Built-in formats of Excel whose numbers do not look as they are stored (ECMA-376, part 1, 18.8.30).
BUILT_IN = {
    **{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 14: "yyyy-mm-dd dd.mm.yyyy", 15: "d-mmm-yy"},
    **{
        16: "d-mmm",
        17: "mmm-yy",
        18: "h:mm",
        19: "h:mm:ss",
        20: "h:mm",
        21: "h:mm:ss",
        22: "yyyy-mm-dd dd.mm.yyyy h:mm",
    },
    **{37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss"},
}
#: Parts of a code that show a date, a text in quotes, or an escaped character.
DATE_PART = re.compile(r'"[^"]*"|\\.|\[(?:h+|m+|s+)\]|y+|m+|d+|h+|s+|am/pm|a/p', re.IGNORECASE)
TEXTS = re.compile(r'"([^"]*)"|\\(.)|_.|\*.|\[[^\]]*\]')
#: The code for numbers of one sign; a currency with its language, as in [$€-407].
SECTION = re.compile(r'(?:"[^"]*+"|\\.|[^;"\\])++')
CURRENCY = re.compile(r"\[\$([^\]-]*+)(?:-[^\]]*+)?+\]")
#: Most characters of a code.
LONGEST_CODE = 255
#: Digits of a number: those before the decimal point, and those after it.
DIGITS = re.compile(r"[#0?][#0?,]*(?:\.([#0?]*))?")
PLACES = re.compile("[#0?.,]+")
#: The first day that Excel counts; 1900 is a leap year there.
FIRST_DAY = datetime(1899, 12, 30)
FIRST_DAY_OF_1904 = datetime(1904, 1, 1)
NAMES = {"yy": "%y", "mmm": "%b", "mmmm": "%B", "mmmmm": "%b", "ddd": "%a", "dddd": "%A"}


def shown(value: str, code: str, starts_1904: bool) -> str:
    """Return the number *value* as the format *code* shows it; as it is stored, with 15 digits, in other formats."""
    try:
        number = float(value)
    except ValueError:
        return value
    if not isfinite(number):
        return value
    plain = f"{number:.15g}" if "." in value or "e" in value.lower() else value
    code, is_date, has_sign = section(code[:LONGEST_CODE], (number > 0) - (number < 0))
    if is_date:
        return date(number, code, starts_1904) or plain
    return decimal(abs(number) if has_sign else number, code) or plain


@lru_cache(1024)
def section(code: str, sign: int) -> tuple[str, bool, bool]:
    """Return the section of *code* for numbers of the *sign*, True for a date, and True if it shows the sign itself."""
    # A currency is shown; the language behind it is not.
    code = CURRENCY.sub(lambda match: f'"{match[1]}"', code)
    # Codes of positive numbers, negative numbers, and 0.
    sections = SECTION.findall(code) or [""]
    which = min({1: 0, -1: 1, 0: 2}[sign], len(sections) - 1)
    code = sections[which]
    parts = [part.lower() for part in DATE_PART.findall(re.sub(r"\[[a-z]{3,}\d*\]", "", code, flags=re.IGNORECASE))]
    digits = code.replace(".000", "").replace(".00", "").replace(".0", "")
    return code, any(part[0] in "ymdhs[" for part in parts) and "0" not in digits, which == 1


def date(number: float, code: str, starts_1904: bool) -> str:
    """Return the date or time of the serial *number* in the format *code*; "" for a number beyond all dates."""
    try:
        moment = (FIRST_DAY_OF_1904 if starts_1904 else FIRST_DAY) + timedelta(seconds=round(number * 86400))
    except OverflowError:
        return ""
    twelve = re.search("am/pm|a/p", code, re.IGNORECASE)
    before = ""

    def part(match: re.Match[str]) -> str:
        nonlocal before
        text = match[0]
        if text[0] in '"\\':
            return text.strip('"\\')
        unit, last = text.lower(), before
        before = unit
        if unit[0] == "[":
            return str(int(number * {"h": 24, "m": 1440, "s": 86400}[unit[1]]))
        if unit in ("am/pm", "a/p"):
            return moment.strftime("%p")
        # Months, too, are "m"; minutes are beside hours or seconds.
        is_minute = unit in ("m", "mm") and (
            last[:1] == "h" or last[:2] == "[h" or re.match("[^a-z]*s", code[match.end() :], re.IGNORECASE)
        )
        if unit in NAMES:
            return moment.strftime(NAMES[unit])
        if unit[0] == "h" and twelve:
            return f"{(moment.hour - 1) % 12 + 1:0{len(unit)}}"
        values = {
            "y": moment.year,
            "m": moment.minute if is_minute else moment.month,
            "d": moment.day,
            "h": moment.hour,
        }
        return f"{values.get(unit[0], moment.second):0{len(unit)}}"

    without_locale = re.sub(r"\[(?!h+\]|m+\]|s+\])[^\]]*\]|[_*].|@", "", code, flags=re.IGNORECASE)
    code = without_locale
    return DATE_PART.sub(part, without_locale)


def decimal(number: float, code: str) -> str:
    """Return *number* with the zeros, decimals, thousands, percent and texts of *code*; "" for another code."""
    bare = TEXTS.sub("", code).replace(" ", "")
    digits = DIGITS.search(bare)
    if digits is None or "/" in bare:
        return ""
    decimals = len(digits[1] or "")
    if "E" in bare:
        return f"{number:.{decimals}E}"
    whole = digits[0].split(".")[0]
    text = f"{abs(number) * (100 if '%' in bare else 1):{',' if ',' in whole else ''}.{decimals}f}"
    zeros = whole.count("0") - len(text.split(".")[0])
    text = ("-" if number < 0 else "") + "0" * zeros + text
    literal = TEXTS.sub(lambda match: match[1] or match[2] or "", code)
    before, found, after = literal.partition(digits[0])
    # Texts between the digits stand behind them.
    return f"{before}{text}{after}".strip() if found else f"{text} {PLACES.sub('', literal)}".strip()
