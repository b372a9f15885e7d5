"""Lines of the settings of Search Tuning: half-lives, pins with conditions, hidden pages, and their errors."""

from datetime import date
from datetime import timedelta
from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.fulltext.site import midnight
from plone.pgcatalog.fulltext.tuning import LineError
from plone.pgcatalog.fulltext.tuning import Pin
from plone.pgcatalog.fulltext.tuning import problems
from plone.pgcatalog.fulltext.tuning import read_half_life
from plone.pgcatalog.fulltext.tuning import read_hidden
from plone.pgcatalog.fulltext.tuning import read_pin
from plone.pgcatalog.i18n import english
from typing import Any

import pytest


UID = "3ac0c8e1b1f94bd4a3d8d4a57b2f1d10"
FIRST, LAST = date(2026, 12, 1), date(2026, 12, 24)


@pytest.mark.parametrize(
    ("line", "pin"),
    [
        ("a b = /c/", Pin("a b", "/c")),
        (f"a = {UID} until 2026-12-24", Pin("a", UID, last=LAST)),
        ("a = /c from 2026-12-01", Pin("a", "/c", first=FIRST)),
        (
            "a = /c until 2026-12-24  below /en/intranet/ from 2026-12-01",
            Pin("a", "/c", False, "/en/intranet", FIRST, LAST),
        ),
        ("a => -/c", Pin("a", "/c", True)),
        ("a = -/c below /en", Pin("a", "/c", True, "/en")),
        ("a => /c", Pin("a", "/c")),
        ('a = "/news from here" from 2026-12-01', Pin("a", "/news from here", first=FIRST)),
        ('a => -"/c until 2026-12-24"', Pin("a", "/c until 2026-12-24", True)),
        ("a = /with spaces inside", Pin("a", "/with spaces inside")),
        ("from = /from", Pin("from", "/from")),
    ],
)
def test_pin_is_read_from_its_line(line: str, pin: Pin) -> None:
    assert read_pin(line) == pin


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *(("a = /news from here", "is not a day"), ("a = /c from", "is put in quotes")),
        *(("a = /c below /x below /y", "is put in quotes"), ('a = "/c"until 2026-12-24', "is put in quotes")),
        *(("a = /c from 2026-12-01 2026-12-24", "is put in quotes"), ("a = /c from 1.12.2026", "is not a day")),
        *(("a = /c until 2026-02-30", "is not a day"), ("a = /c from 2026-12-24 until 2026-12-01", "before it begins")),
        *(("a = /c below en", "is neither a path"), (f"a = /c below {UID}", "is not a path in the site")),
        *(("= /c", "is not of the form"), ("a = -", "is not of the form"), ('a = ""', "is neither a path")),
        ('a = "/c', "is neither a path"),
    ],
)
def test_wrong_pin_is_refused_with_the_reason(line: str, message: str) -> None:
    [problem] = problems("pins", line)
    assert message in english(problem)


@pytest.mark.parametrize(
    ("read", "line", "value"),
    [
        (read_half_life, "News Item = 90 days", ("News Item", 90)),
        (read_half_life, "Event = 1 day", ("Event", 1)),
        *(
            (read_half_life, f"Event = {text}", None)
            for text in ("0 days", "1.5 days", "90", "days", "9 weeks", "-1 day")
        ),
        *((read_half_life, text, None) for text in ("= 9 days", "9 days", "Event = 123456 days")),
        *((read_hidden, text, "/a b/c") for text in ("/a b/c/", "hide = /a b/c", "hide=/a b/c")),
        *((read_hidden, text, UID) for text in (UID, f"hide = {UID}")),
        (read_hidden, "/a=b", "/a=b"),
        *((read_hidden, text, None) for text in ("/", "hide =", "hide = x", "show = /a", "a")),
    ],
)
def test_line_is_read_or_refused(read: Any, line: str, value: Any) -> None:
    if value is not None:
        assert read(line) == value
        return
    with pytest.raises(LineError):
        read(line)


@given(st.dates(date(1000, 1, 9), date(9999, 9, 9)), st.integers(0, 40), st.integers(-3, 43))
def test_pin_applies_in_all_days_of_its_period(first: date, length: int, place: int) -> None:
    pin = read_pin(f"a = /c from {first} until {first + timedelta(days=length)}")
    day = first + timedelta(days=place)
    assert (pin.has_begun(day) and not pin.has_ended(day)) == (0 <= place <= length)
    assert pin.has_begun(day) or not pin.has_ended(day)


def test_day_is_that_of_the_time_zone() -> None:
    # Their clocks differ by 25 hours.
    assert midnight("Pacific/Kiritimati").date() > midnight("Pacific/Pago_Pago").date()
    assert midnight("no/such zone").utcoffset() == midnight("UTC").utcoffset() == timedelta()
