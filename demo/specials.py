"""What only one type of content has: times of events, files, targets of links."""

from collections.abc import Callable
from datetime import datetime
from datetime import timedelta
from demo import words
from demo.item import Item
from io import BytesIO
from PIL import Image
from random import Random
from typing import Any


DAY = timedelta(days=1)
ICAL = "%Y%m%dT%H%M%S"


def add(item: Item, rng: Random, today: datetime) -> None:
    """Add to the item what its type asks for."""
    if special := SPECIALS.get(item.portal_type):
        item.fields |= special(item, rng, today)


def event(item: Item, rng: Random, today: datetime) -> dict[str, Any]:
    """Return times within a year before and after today, a third of them soon."""
    if rng.random() < 0.35:
        start = today + DAY * rng.randint(0, 45)
    else:
        start = today + DAY * rng.randint(-300, 300)
    # The wall clock counts: an addition of hours could cross the clock change.
    start = start.replace(hour=rng.randint(7, 20), minute=rng.choice([0, 15, 30]))
    end = start + timedelta(minutes=rng.choice([45, 60, 90, 120, 180]))
    kind = rng.choices(["timed", "days", "whole", "open"], [70, 10, 12, 8])[0]
    if kind == "days":
        end = start + DAY * rng.randint(1, 4)
    if kind == "whole":
        start = start.replace(hour=0, minute=0)
        end = start.replace(hour=23, minute=59, second=59)
    if kind == "open":
        end = start.replace(hour=23, minute=59, second=59)
    city = words.language(item.language).slots["P"].draw(rng)
    fields = {
        "start": start,
        "end": end,
        "whole_day": kind == "whole",
        "open_end": kind == "open",
        "location": city,
    }
    if kind != "days" and rng.random() < 0.4:
        fields["recurrence"] = recurrence(start, rng)
    return fields


def recurrence(start: datetime, rng: Random) -> str:
    """Return a recurrence as Plone's widget writes it, of one of six kinds."""
    weekday = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[start.weekday()]
    # Four months: weekly events cross at least one change of the clock each year.
    until = (start + DAY * rng.randint(90, 150)).strftime("%Y%m%dT235959")
    second, third = ((start + DAY * 7 * n).strftime(ICAL) for n in (1, 2))
    extra = (start + DAY * 10).strftime(ICAL)
    return rng.choice(
        [
            f"RRULE:FREQ=WEEKLY;BYDAY={weekday};COUNT={rng.randint(4, 12)}",
            f"RRULE:FREQ=WEEKLY;BYDAY={weekday};UNTIL={until}",
            f"RRULE:FREQ=WEEKLY;COUNT=8\r\nEXDATE:{second},{third}",
            f"RRULE:FREQ=WEEKLY;COUNT=5\r\nRDATE:{extra}",
            f"RRULE:FREQ=MONTHLY;BYDAY=+1TU;UNTIL={until}",
            f"RRULE:FREQ=DAILY;INTERVAL={rng.randint(1, 3)};COUNT=6",
        ]
    )


def link(item: Item, rng: Random, today: datetime) -> dict[str, Any]:
    """Return a target on an example host, or one inside the site."""
    name = words.slug(item.topic.en)
    outside = f"https://www.example.org/{name}?page={rng.randint(1, 99)}#top"
    return {"remoteUrl": rng.choice([outside, f"/{item.language}"])}


def file(item: Item, rng: Random, today: datetime) -> dict[str, Any]:
    """Return a small text or table."""
    vocabulary = words.language(item.language)
    if rng.random() < 0.6:
        paragraphs = [vocabulary.paragraph(rng, item.topic, 80) for _ in range(rng.randint(2, 9))]
        content, kind = "\n\n".join(paragraphs), "text/plain"
    else:
        rows = [
            f"{year};{vocabulary.slots['N'].draw(rng)};{rng.randint(1, 9999)}"
            for year in range(2001, 2001 + rng.randint(5, 25))
        ]
        content, kind = "\n".join(rows), "text/csv"
    name = f"{item.topic.id}.{'txt' if kind == 'text/plain' else 'csv'}"
    return {"file": (content.encode(), kind, name)}


def image(item: Item, rng: Random, today: datetime) -> dict[str, Any]:
    """Return a small picture: the catalog keeps the addresses of its scales."""
    color = bytes(rng.randrange(256) for _ in range(3))
    content = BytesIO()
    Image.new("RGB", (rng.choice([40, 320]), 30), tuple(color)).save(content, "PNG")
    return {"image": (content.getvalue(), "image/png", "image.png")}


def collection(item: Item, rng: Random, today: datetime) -> dict[str, Any]:
    """Return a stored query: the published content on the topic."""
    selection = "plone.app.querystring.operation.selection.any"
    return {
        "query": [
            {"i": "review_state", "o": selection, "v": ["published"]},
            {"i": "Subject", "o": selection, "v": [item.topic.title(item.language)]},
        ],
        "sort_on": "modified",
        "sort_reversed": True,
    }


SPECIALS: dict[str, Callable[[Item, Random, datetime], dict[str, Any]]] = {
    "Collection": collection,
    "Event": event,
    "File": file,
    "Image": image,
    "Link": link,
}
