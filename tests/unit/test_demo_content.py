"""What the demo's site is to contain: always the same, and some of everything."""

from collections import Counter
from datetime import datetime
from datetime import timedelta
from demo import plan as plans
from demo import words
from demo.plan import make_plan
from demo.plan import TYPE_SHARES
from demo.words import Item
from itertools import pairwise
from plone.event.recurrence import recurrence_sequence_ical
from random import Random
from zoneinfo import ZoneInfo

import pytest
import pytz
import re


TODAY = datetime(2026, 11, 20, tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.fixture(scope="module")
def plan() -> list[Item]:
    return make_plan(1000, TODAY)


def test_same_seed_same_plan(plan: list[Item]) -> None:
    assert make_plan(1000, TODAY) == plan


def test_other_seed_other_plan(plan: list[Item]) -> None:
    assert make_plan(1000, TODAY, seed=1) != plan


@pytest.mark.parametrize("objects", [40, 41, 60, 137, 1000])
def test_as_many_as_asked_for(objects: int) -> None:
    assert len(make_plan(objects, TODAY)) == objects


def test_too_few() -> None:
    with pytest.raises(ValueError, match="at least 40"):
        make_plan(39, TODAY)


@pytest.mark.parametrize("objects", [40, 1000])
def test_containers_come_first(objects: int) -> None:
    folders = {""}
    paths = set()
    for item in make_plan(objects, TODAY):
        assert item.path.rpartition("/")[0] in folders
        assert item.path not in paths
        assert re.fullmatch(r"[a-z0-9/-]+", item.path)
        paths.add(item.path)
        if item.portal_type == "Folder":
            folders.add(item.path)


@pytest.mark.parametrize("objects", [40, 1000])
def test_some_of_everything(objects: int) -> None:
    plan = make_plan(objects, TODAY)
    assert {item.portal_type for item in plan} == {"Folder", *TYPE_SHARES}
    assert {item.language for item in plan} == {"de", "en", "zh"}
    assert {item.state for item in plan} == {"published", "private", "pending", None}
    assert max(item.depth for item in plan if item.portal_type == "Folder") == 4


def test_mix(plan: list[Item]) -> None:
    types = Counter(item.portal_type for item in plan)
    assert 100 <= types["Folder"] <= 140
    assert types["Document"] > types["News Item"] > types["Event"] > types["File"] > 50
    # Private, not yet and no longer shown: the security filter has work to do.
    assert 100 < sum(item.state == "private" for item in plan) < 300
    assert sum(bool(i.effective and i.effective > TODAY) for i in plan) > 10
    assert sum(bool(i.expires and i.expires < TODAY) for i in plan) > 10
    assert sum(bool(item.related) for item in plan) > 100
    assert sum(item.exclude_from_nav for item in plan) > 50


def test_people(plan: list[Item]) -> None:
    names = {person.id for person in plans.PEOPLE}
    assert {item.creator for item in plan} == names
    shared = {user for item in plan for user, _ in item.local_roles}
    assert shared <= names | {plans.RESEARCHERS}
    assert plans.RESEARCHERS in shared


def test_dates_are_in_order(plan: list[Item]) -> None:
    for item in plan:
        assert item.created <= item.modified <= TODAY
        if item.effective and item.expires:
            assert item.effective < item.expires or item.effective > TODAY


def test_related_items_exist_already(plan: list[Item]) -> None:
    paths = set()
    for item in plan:
        assert paths.issuperset(item.related)
        paths.add(item.path)


def test_events(plan: list[Item]) -> None:
    events = [item.fields for item in plan if item.portal_type == "Event"]
    rules = [event["recurrence"] for event in events if "recurrence" in event]
    for part in ("COUNT=", "UNTIL=", "EXDATE:", "RDATE:", "WEEKLY", "MONTHLY", "DAILY"):
        assert any(part in rule for rule in rules), part
    assert all(event["start"] < event["end"] for event in events)
    month = [e for e in events if TODAY <= e["start"] < TODAY + timedelta(days=31)]
    assert len(month) > 10


def test_recurrences_are_understood_by_plone(plan: list[Item]) -> None:
    for item in plan:
        if rule := item.fields.get("recurrence"):
            # plone.event asks for the zones of pytz.
            start = item.fields["start"].astimezone(pytz.timezone("Europe/Berlin"))
            dates = list(recurrence_sequence_ical(start, recrule=rule))
            assert 1 <= len(dates) < 60
            # The wall clock stays the same across the change to summer time.
            hours = {date.hour for date in dates}
            assert hours == {item.fields["start"].hour}
            assert all(before < after for before, after in pairwise(dates))


def test_texts_are_as_long_as_real_ones(plan: list[Item]) -> None:
    for item in plan:
        if item.portal_type == "Document":
            text = re.sub(r"<[^>]+>", " ", item.fields["text"])
            assert words.count_words(text) >= 200


def test_words_have_the_frequencies_of_real_texts() -> None:
    rng = Random(4711)
    nouns = words.language("de").slots["N"]
    counts = Counter(nouns.draw(rng) for _ in range(20_000)).most_common()
    assert len(counts) > 1500
    # Zipf: the tenth word comes about a tenth as often as the first one.
    assert 5 < counts[0][1] / counts[9][1] < 20


def test_languages_differ(plan: list[Item]) -> None:
    for item in plan:
        if item.portal_type == "Document":
            han = bool(words.HAN.search(item.fields["text"]))
            assert han == (item.language == "zh")
    german = "".join(i.title for i in plan if i.language == "de")
    assert set("äöüß") <= set(german)


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Öffentliche Straßen", "oeffentliche-strassen"),
        ("What's new in Saint John's?", "what-s-new-in-saint-john-s"),
        ("图书馆", ""),
    ],
)
def test_slug(title: str, slug: str) -> None:
    assert words.slug(title) == slug
