"""The content of the demo site, as pure data: a plan needs no Plone.

The same number of objects, seed and day result in the same plan.  Times are relative to
the day on which the site is created, so that there are always events next month.
"""

from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta
from demo import words
from demo.words import Item
from demo.words import LANGUAGE_TITLES
from demo.words import Topic
from io import BytesIO
from PIL import Image
from random import Random
from typing import Any


DAY = timedelta(days=1)
ICAL = "%Y%m%dT%H%M%S"
SEED = 4711
#: The time zone of the site.
ZONE = "Europe/Berlin"
MAX_DEPTH = 4
FOLDER_SHARE = 0.12
LANGUAGE_SHARES = {"de": 40, "en": 35, "zh": 25}
#: Percent of the objects other than folders.
TYPE_SHARES = {"Document": 44, "News Item": 19, "Event": 15, "File": 10, "Link": 6, "Image": 4, "Collection": 2}
WORDS = {"Document": (200, 600), "News Item": (150, 350), "Event": (40, 180)}
NO_WORKFLOW = ("File", "Image")
STATES = {"published": 65, "private": 22, "pending": 13}


#: The password of all users; the tour prints it.
PASSWORD = "demo-site"
ADMIN = "admin"

#: A group whose members read the internal folders.
RESEARCHERS = "researchers"


@dataclass(frozen=True)
class Person:
    """A user of the demo site."""

    id: str
    fullname: str
    roles: tuple[str, ...] = ("Member",)
    groups: tuple[str, ...] = ()


PEOPLE = (
    Person("anna", "Anna Groß", ("Member", "Editor")),
    Person("bert", "Bert Weiß"),
    Person("chen", "陈伟"),
    Person("dora", "Dora Smith", ("Member", "Contributor")),
    Person("emil", "Emil Öztürk", ("Member", "Reviewer")),
    Person("fay", "Fay O'Neill", groups=(RESEARCHERS,)),
    Person("gao", "高芳", groups=(RESEARCHERS,)),
    Person("hana", "Hana Nováková", ("Member", "Site Administrator")),
)

#: Local roles on the folder of each language.
LANGUAGE_ROLES = {
    "de": (("bert", ("Editor", "Reader")),),
    "en": (("dora", ("Contributor", "Editor")),),
    "zh": (("chen", ("Editor", "Reviewer")),),
}

#: Local roles on the internal folder of each language, which is private.
INTERNAL_ROLES = ((RESEARCHERS, ("Reader",)), ("bert", ("Reader",)))


def make_plan(objects: int, today: datetime, seed: int = SEED) -> list[Item]:
    """Return *objects* items, containers before their content.

    ``today`` is midnight of the day, with its time zone.
    """
    if objects < 40:
        raise ValueError("The demo needs at least 40 objects to show something.")
    return list(_Planner(today, Random(seed)).items(objects))


def quotas(total: int, shares: dict[str, int]) -> list[str]:
    """Return ``total`` keys in proportion to their shares, each at least once."""
    whole = sum(shares.values())
    counts = {key: max(1, total * share // whole) for key, share in shares.items()}
    first = next(iter(shares))
    counts[first] += total - sum(counts.values())
    return [key for key, count in counts.items() for _ in range(count)]


class _Planner:
    """Draws one item after the other; all random values come from one generator."""

    def __init__(self, today: datetime, rng: Random) -> None:
        self.today = today
        self.rng = rng
        self.folders: dict[str, list[Item]] = {code: [] for code in words.LANGUAGES}
        self.done: dict[str, list[Item]] = {code: [] for code in words.LANGUAGES}
        self.paths: set[str] = set()

    def items(self, objects: int) -> Iterator[Item]:
        for code in words.LANGUAGES:
            yield from self.language_root(code)
        others = max(4, round(objects * FOLDER_SHARE) - len(self.paths))
        others = min(others, objects - len(self.paths) - 20)
        for code in self.shuffled(quotas(others, LANGUAGE_SHARES)):
            yield self.folder(code)
        rest = objects - len(self.paths)
        types = self.shuffled(quotas(rest, TYPE_SHARES))
        codes = self.shuffled(quotas(rest, LANGUAGE_SHARES))
        for portal_type, code in zip(types, codes, strict=True):
            yield self.leaf(portal_type, code)

    def shuffled(self, values: list[str]) -> list[str]:
        self.rng.shuffle(values)
        return values

    def language_root(self, code: str) -> Iterator[Item]:
        """Yield the folder of a language, its internal folder and one deep branch."""
        topic = words.topics()[0]
        root = self.item("", code, "Folder", code, LANGUAGE_TITLES[code], topic)
        root.local_roles = LANGUAGE_ROLES[code]
        vocabulary = words.language(code)
        internal = self.item(code, "internal", "Folder", code, vocabulary.internal, topic)
        internal.state = "private"
        internal.effective = None
        internal.local_roles = INTERNAL_ROLES
        branch = [root]
        for number, title in enumerate(vocabulary.sections[:2]):
            name = words.language("en").sections[number]
            branch.append(self.item(code, words.slug(name), "Folder", code, title, topic))
        deep = branch[1]
        for topic in words.topics()[:2]:
            deep = self.item(deep.path, topic.id, "Folder", code, topic.title(code), topic)
            branch.append(deep)
        # Content to find by all of several tags.
        deep.subjects = tuple(topic.title(code) for topic in words.topics()[:2])
        for item in (*branch, internal):
            item.exclude_from_nav = False
            item.expires = None
            self.folders[code].append(item)
            yield item

    def folder(self, code: str) -> Item:
        """Extend the tree of a language by a section or a folder on a topic."""
        parents = [folder for folder in self.folders[code] if folder.depth < MAX_DEPTH]
        parent = self.rng.choice(parents)
        sections = words.language(code).sections
        for number, name in enumerate(words.language("en").sections):
            path = f"{code}/{words.slug(name)}"
            if parent.depth == 1 and path not in self.paths:
                topic = self.rng.choice(words.topics())
                item = self.item(code, words.slug(name), "Folder", code, sections[number], topic)
                break
        else:
            topic = self.topic()
            item = self.item(parent.path, topic.id, "Folder", code, topic.title(code), topic)
            self.workflow(item)
        item.exclude_from_nav = self.rng.random() < 0.1
        self.folders[code].append(item)
        return item

    def leaf(self, portal_type: str, code: str) -> Item:
        """Plan a page, news item, event, link, file, image or collection."""
        parent, topic = self.rng.choice(self.folders[code]), self.topic()
        vocabulary = words.language(code)
        title = vocabulary.title(self.rng, topic)
        name = words.slug(title)
        if code == "zh" or not name:
            name = f"{words.slug(portal_type)}-{topic.id}"
        item = self.item(parent.path, name, portal_type, code, title, topic)
        if self.rng.random() < 0.85:
            item.description = vocabulary.paragraph(self.rng, topic, 15)
        self.workflow(item)
        item.exclude_from_nav = self.rng.random() < 0.1
        if portal_type in WORDS:
            size = self.rng.randint(*WORDS[portal_type])
            item.fields["text"] = vocabulary.body(self.rng, topic, size)
        add_specials(item, self.rng, self.today)
        earlier = self.done[code]
        if portal_type in WORDS and earlier and self.rng.random() < 0.3:
            count = min(len(earlier), self.rng.randint(1, 3))
            item.related = tuple(i.path for i in self.rng.sample(earlier, count))
        earlier.append(item)
        return item

    def topic(self) -> Topic:
        return self.rng.choice(words.topics()[: self.rng.randint(4, 24)])

    def item(self, parent: str, name: str, kind: str, code: str, title: str, topic: Topic) -> Item:
        """Return an item with the attributes of all types."""
        path = base = f"{parent}/{name}".lstrip("/")
        number = 1
        while path in self.paths:
            number += 1
            path = f"{base}-{number}"
        self.paths.add(path)
        # Most content is new: the square shifts the ages towards zero.
        age = timedelta(days=1500 * self.rng.random() ** 2 + 0.5)
        created = self.today - timedelta(minutes=age // timedelta(minutes=1))
        later = int((self.today - created).total_seconds() * self.rng.random() ** 3)
        subjects = [topic.title(code)]
        for _ in range(self.rng.randint(0, 3)):
            subjects.append(self.topic().title(code))
        if self.rng.random() < 0.2:
            subjects.append(str(created.year))
        return Item(
            path=path,
            portal_type=kind,
            language=code,
            title=title if number == 1 or kind != "Folder" else f"{title} {number}",
            topic=topic,
            created=created,
            modified=created + timedelta(seconds=later),
            creator=self.rng.choice(PEOPLE).id,
            subjects=tuple(dict.fromkeys(subjects)),
            state=None if kind in NO_WORKFLOW else "published",
            effective=created,
        )

    def workflow(self, item: Item) -> None:
        """Draw the state and the period in which the item is published."""
        rng, days = self.rng, timedelta(days=1)
        if item.portal_type not in NO_WORKFLOW:
            (item.state,) = rng.choices(list(STATES), list(STATES.values()))
        if item.state in ("private", "pending"):
            item.effective = None
        elif rng.random() < 0.06:
            item.effective = self.today + days * rng.randint(2, 60)
        elif rng.random() < 0.5:
            item.effective = item.created + (item.modified - item.created) / 2
        if rng.random() < 0.08:
            past = rng.random() < 0.5 and item.created < self.today - days * 40
            offset = -rng.randint(3, 30) if past else rng.randint(70, 400)
            item.expires = self.today + days * offset


# -- attributes of only one type of content: times of events, files, targets of links


def add_specials(item: Item, rng: Random, today: datetime) -> None:
    """Add the fields of its type to the item."""
    if special := SPECIALS.get(item.portal_type):
        item.fields |= special(item, rng, today)


def event(item: Item, rng: Random, today: datetime) -> dict[str, Any]:
    """Return times within a year before and after today, a third of them soon."""
    if rng.random() < 0.35:
        start = today + DAY * rng.randint(0, 45)
    else:
        start = today + DAY * rng.randint(-300, 300)
    # Local time counts: adding hours could cross the clock change.
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
    fields = {"start": start, "end": end, "whole_day": kind == "whole", "open_end": kind == "open", "location": city}
    if kind != "days" and rng.random() < 0.4:
        fields["recurrence"] = recurrence(start, rng)
    return fields


def recurrence(start: datetime, rng: Random) -> str:
    """Return a recurrence in the format of Plone's widget, of one of six kinds."""
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
    """Return a small text or table, of a kind that Plone itself reads, so that Plone's own catalog finds its words."""
    vocabulary = words.language(item.language)
    if rng.random() < 0.6:
        paragraphs = [vocabulary.paragraph(rng, item.topic, 80) for _ in range(rng.randint(2, 9))]
        content, ending = "\n\n".join(paragraphs), "txt"
    else:
        years = range(2001, 2001 + rng.randint(5, 25))
        rows = [f"{year};{vocabulary.slots['N'].draw(rng)};{rng.randint(1, 9999)}" for year in years]
        content, ending = "\n".join(rows), "csv"
    return {"file": (content.encode(), "text/plain", f"{item.topic.id}.{ending}")}


def image(item: Item, rng: Random, today: datetime) -> dict[str, Any]:
    """Return a small picture: the catalog stores the addresses of its scales."""
    color = bytes(rng.randrange(256) for _ in range(3))
    content = BytesIO()
    Image.new("RGB", (rng.choice([40, 320]), 30), tuple(color)).save(content, "PNG")
    return {"image": (content.getvalue(), "image/png", "image.png")}


def collection(item: Item, rng: Random, today: datetime) -> dict[str, Any]:
    """Return a stored query: the published content on the topic."""
    selection = "plone.app.querystring.operation.selection.any"
    published = {"i": "review_state", "o": selection, "v": ["published"]}
    on_topic = {"i": "Subject", "o": selection, "v": [item.topic.title(item.language)]}
    return {"query": [published, on_topic], "sort_on": "modified", "sort_reversed": True}


type Special = Callable[[Item, Random, datetime], dict[str, Any]]
SPECIALS: dict[str, Special] = {"Collection": collection, "Event": event, "File": file, "Image": image, "Link": link}
