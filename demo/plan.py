"""What the demo site contains, as pure data: no Plone is needed to make a plan.

The same number of objects, seed and day give the same plan.  Times are relative to
the day on which the site is made, so that there are always events next month.
"""

from collections.abc import Iterator
from datetime import datetime
from datetime import timedelta
from demo import people
from demo import specials
from demo import words
from demo.item import Item
from demo.item import LANGUAGE_TITLES
from demo.words import Topic
from random import Random


SEED = 4711
MAX_DEPTH = 4
FOLDER_SHARE = 0.12
LANGUAGE_SHARES = {"de": 40, "en": 35, "zh": 25}
#: Per hundred objects that are no folders.
TYPE_SHARES = {
    "Document": 44,
    "News Item": 19,
    "Event": 15,
    "File": 10,
    "Link": 6,
    "Image": 4,
    "Collection": 2,
}
WORDS = {"Document": (200, 600), "News Item": (150, 350), "Event": (40, 180)}
NO_WORKFLOW = ("File", "Image")
STATES = {"published": 65, "private": 22, "pending": 13}


def make_plan(objects: int, today: datetime, seed: int = SEED) -> list[Item]:
    """Return that many items, containers before what they contain.

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
    """Draws item after item; everything random comes from one generator."""

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
        root.local_roles = people.LANGUAGE_ROLES[code]
        vocabulary = words.language(code)
        internal = self.item(code, "internal", "Folder", code, vocabulary.internal, topic)
        internal.state = "private"
        internal.effective = None
        internal.local_roles = people.INTERNAL_ROLES
        branch = [root]
        for number, title in enumerate(vocabulary.sections[:2]):
            name = words.language("en").sections[number]
            branch.append(self.item(code, words.slug(name), "Folder", code, title, topic))
        deep = branch[1]
        for topic in words.topics()[:2]:
            deep = self.item(deep.path, topic.id, "Folder", code, topic.title(code), topic)
            branch.append(deep)
        # Something to find by all of several tags.
        deep.subjects = tuple(topic.title(code) for topic in words.topics()[:2])
        for item in (*branch, internal):
            item.exclude_from_nav = False
            item.expires = None
            self.folders[code].append(item)
            yield item

    def folder(self, code: str) -> Item:
        """Grow the tree of a language by a section or a folder on a topic."""
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
        specials.add(item, self.rng, self.today)
        earlier = self.done[code]
        if portal_type in WORDS and earlier and self.rng.random() < 0.3:
            count = min(len(earlier), self.rng.randint(1, 3))
            item.related = tuple(i.path for i in self.rng.sample(earlier, count))
        earlier.append(item)
        return item

    def topic(self) -> Topic:
        return self.rng.choice(words.topics()[: self.rng.randint(4, 24)])

    def item(self, parent: str, name: str, kind: str, code: str, title: str, topic: Topic) -> Item:
        """Return an item with what all types have in common."""
        path = base = f"{parent}/{name}".lstrip("/")
        number = 1
        while path in self.paths:
            number += 1
            path = f"{base}-{number}"
        self.paths.add(path)
        # Most content is young: the square draws towards today.
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
            creator=self.rng.choice(people.PEOPLE).id,
            subjects=tuple(dict.fromkeys(subjects)),
            state=None if kind in NO_WORKFLOW else "published",
            effective=created,
        )

    def workflow(self, item: Item) -> None:
        """Draw the state and the time in which the item is shown."""
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
