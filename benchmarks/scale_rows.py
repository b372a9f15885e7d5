"""Catalog entries of a large site, made without its objects: what the indexers say of one object of each type, varied.

Texts are taken from a pool that the real text indexes have extracted; each row adds a word of its own, as ids and names do.
"""

from benchmarks.documents import DAYS
from benchmarks.documents import FIRST_DAY
from benchmarks.documents import FOLDER_SIZE
from benchmarks.documents import STATES
from benchmarks.rows import Row
from benchmarks.scenarios import Place
from benchmarks.texts import documents_with_texts
from benchmarks.texts import SYLLABLES
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from DateTime import DateTime
from datetime import timedelta
from datetime import UTC
from functools import cache
from itertools import accumulate
from plone.pgcatalog.indexing.codec import encode
from plone.pgcatalog.indexing.pending import Entry
from random import Random
from typing import Any


SEED = 1507
#: Texts that the real indexes take apart; rows share them, if there are more.
TEXTS = 4_000
TEXT_INDEXES = ("Title", "Description", "SearchableText")
TYPES = {"Document": 60, "Image": 15, "File": 10, "News Item": 9, "Event": 4, "Link": 2}
#: Sections of the site; the n-th of the other folders is in the one with a tenth of its number.
SECTIONS = 30
#: Who writes, and what about: the n-th comes 1/n as often as the first one.
CREATORS = 200
TAGS = 1_000
MOST_TAGS = 4
#: Interfaces that some objects have besides those of their type.
MARKERS = 8
MARKED = 0.2
#: The part of what is published whose date has come, and has not gone by.
EXPIRED = 0.02


@dataclass(frozen=True)
class Tree(Place):
    """The folders of the site: ``folder(n)`` is the path of one."""

    def folder(self, number: int) -> str:
        number %= self.folders
        if number < SECTIONS:
            return f"{self.path}/folder{number}"
        return f"{self.folder((number - SECTIONS) // 10)}/folder{number}"


def folders(rows: int) -> int:
    """Return how many of so many *rows* are folders."""
    return max(SECTIONS, rows // FOLDER_SIZE)


def own_word(number: int) -> str:
    """Return the word that only the row with that *number* has: four syllables."""
    base = len(SYLLABLES)
    # A prime, so that no two numbers below 60⁴ share a word.
    number = number * 7_368_787 % base**4
    parts = []
    for _ in range(4):
        number, part = divmod(number, base)
        parts.append(SYLLABLES[part])
    return "".join(parts)


def weights(count: int) -> list[float]:
    return list(accumulate(1 / n for n in range(1, count + 1)))


class SiteRows:
    """*count* entries for the catalog tool *catalog*; *examples* are those of a real object of each of ``TYPES`` and *Folder*."""

    def __init__(self, catalog: Any, tree: Tree, examples: Mapping[str, Entry], count: int) -> None:
        self.count = count
        self.tree = tree
        self.examples = examples
        core = catalog._core
        columns = [c.name for name in TEXT_INDEXES for c in core.translator(name).columns()]
        self.texts = []
        for document in documents_with_texts(min(TEXTS, count)):
            row = Row(document)
            row.SearchableText = f"{document.title} {document.description} {document.text}"
            entry = core.entry(row, "/text")
            kept = {name: entry.idx[name] for name in ("Title", "Description") if name in entry.idx}
            self.texts.append(({name: entry.columns.get(name) for name in columns}, kept))
        self.creators = [f"author{n}" for n in range(CREATORS)]
        self.tags = [f"tag{n}" for n in range(TAGS)]
        self.by_creator, self.by_tag = weights(CREATORS), weights(TAGS)

    def entries(self, first_zoid: int) -> Iterator[Entry]:
        """Yield the entries, of objects from *first_zoid* on; the same ones each time."""
        rng = Random(SEED)
        kinds, shares = list(TYPES), list(TYPES.values())
        states, state_shares = list(STATES), list(STATES.values())
        for number in range(self.count):
            is_folder = number < self.tree.folders
            kind = "Folder" if is_folder else rng.choices(kinds, shares)[0]
            path = self.tree.folder(number)
            if not is_folder:
                path += f"/doc{number}"
            state = rng.choices(states, state_shares)[0]
            yield self._entry(rng, number, first_zoid + number, kind, state, path)

    def _entry(self, rng: Random, number: int, zoid: int, kind: str, state: str, path: str) -> Entry:
        example = self.examples[kind]
        text, shown = rng.choice(self.texts)
        creator = rng.choices(self.creators, cum_weights=self.by_creator)[0]
        tags = sorted(set(rng.choices(self.tags, cum_weights=self.by_tag, k=rng.randint(0, MOST_TAGS))))
        created = (FIRST_DAY + timedelta(minutes=rng.randrange(DAYS * 1440))).replace(tzinfo=UTC)
        modified = created + timedelta(minutes=rng.randrange(200_000))
        expires = created + timedelta(days=rng.randrange(900)) if rng.random() < EXPIRED else None
        provides = example.columns["object_provides"]
        if rng.random() < MARKED:
            provides = sorted([*provides, f"site.policy.interfaces.IMarker{int(MARKERS * rng.random() ** 2)}"])
        roles = ["Anonymous"]
        if state != "published":
            # Each section has readers of its own.
            section = path.removeprefix(self.tree.path).split("/")[1]
            roles = sorted([*example.columns["allowed_roles"], f"user:{creator}", f"user:readers-{section}"])
        parent, id = path.rsplit("/", 1)
        word = own_word(number)
        uid = f"{number + 1:032x}"
        title = f"{shown['Title']} {word}"
        plain = {
            "id": id,
            "get_id": id,
            "uid": uid,
            "creator": creator,
            "portal_type": kind,
            "review_state": state,
            "cmf_uid": None,
            "sortable_title": title.lower(),
        }
        columns = {
            **example.columns,
            **text,
            **plain,
            "path_value": path,
            "parent_path": parent,
            "depth": path.count("/"),
            "date": modified,
            "created": created,
            "modified": modified,
            "effective": created,
            "effective_range_since": minutes(created),
            "subject": tags or None,
            "object_provides": provides,
            "allowed_roles": roles,
            "searchable_text": f"{text['searchable_text']} '{word}':{text['searchable_text_words'] + 1}A",
            "searchable_text_words": text["searchable_text_words"] + 1,
            "searchable_text_source": f"{text['searchable_text_source']} {word}",
        }
        idx = {
            **example.idx,
            **shown,
            "Title": title,
            "path": path,
            "id": id,
            "getId": id,
            "UID": uid,
            "Creator": creator,
            "listCreators": encode((creator,)),
            "portal_type": kind,
            "review_state": state,
            "sortable_title": title.lower(),
            "Subject": encode(tuple(tags)),
            "object_provides": provides,
            "allowedRolesAndUsers": roles,
        }
        for name, moment in (("created", created), ("modified", modified), ("effective", created)):
            idx[name] = day(moment.date())
        if expires is not None:
            columns |= {"expires": expires, "effective_range_until": minutes(expires)}
            idx["expires"] = day(expires.date())
        idx["effectiveRange"] = encode(
            (columns["effective_range_since"], None if expires is None else minutes(expires))
        )
        return replace(example, path=path, zoid=zoid, columns=columns, idx=idx)


@cache
def day(date: Any) -> Any:
    """Return *date* as metadata; the time of day is left out, which is much work for nothing."""
    return encode(DateTime(date.isoformat()))


def minutes(moment: Any) -> int:
    """Return *moment* as a date range index keeps it."""
    return int(moment.timestamp() // 60)
