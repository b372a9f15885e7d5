"""Words and sentences in German, English and Chinese for the demo's content, and the attributes of its objects.

Words are drawn with the frequencies of real texts (Zipf's law: the n-th word occurs
1/n as often as the first one), because these determine the speed of a text search.
The long tail are compounds (``Wasserbrücken``, ``microbridges``, ``水利桥梁``).
"""

from dataclasses import dataclass
from dataclasses import field
from datetime import datetime
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any
from typing import Self

import re
import unicodedata


LANGUAGES = ("de", "en", "zh")
LANGUAGE_TITLES = {"de": "Deutsch", "en": "English", "zh": "中文"}
#: Plone's codes of the languages.
LANGUAGE_CODES = {"de": "de", "en": "en", "zh": "zh-cn"}
VOCABULARY = Path(__file__).parent / "vocabulary"
SLOT = re.compile(r"\{([ANPTV])\}")
HAN = re.compile(r"[\u4e00-\u9fff]")
#: Replacements of German letters in a URL; all other letters lose their accents.
SPELLED_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})


@dataclass(frozen=True)
class Topic:
    """A subject in three languages; its id is part of URLs."""

    id: str
    de: str
    en: str
    zh: str

    def title(self, language: str) -> str:
        return str(getattr(self, language))


@dataclass
class Item:
    """One object of the site; paths are relative to the site."""

    path: str
    portal_type: str
    language: str
    title: str
    topic: Topic
    created: datetime
    modified: datetime
    creator: str
    description: str = ""
    subjects: tuple[str, ...] = ()
    state: str | None = "published"
    effective: datetime | None = None
    expires: datetime | None = None
    exclude_from_nav: bool = False
    local_roles: tuple[tuple[str, tuple[str, ...]], ...] = ()
    related: tuple[str, ...] = ()
    #: Fields of its type only, by their names in the schema.
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        return self.path.count("/") + 1


def _lines(name: str) -> list[str]:
    text = (VOCABULARY / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@cache
def topics() -> tuple[Topic, ...]:
    """Return all topics, the frequent ones first."""
    return tuple(Topic(*(cell.strip() for cell in line.split("|"))) for line in _lines("topics.txt"))


@dataclass
class Words:
    """A list of words to draw from, the first one the most often."""

    words: list[str]
    cumulated: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.cumulated = list(accumulate(1 / n for n in range(1, len(self.words) + 1)))

    def draw(self, rng: Random) -> str:
        return rng.choices(self.words, cum_weights=self.cumulated)[0]


@dataclass
class Language:
    """The vocabulary and the sentences of one language."""

    code: str
    sections: list[str]
    internal: str
    titles: list[str]
    templates: list[str]
    slots: dict[str, Words]

    @classmethod
    def load(cls, code: str) -> Self:
        parts: dict[str, list[str]] = {}
        for line in _lines(f"{code}.txt"):
            if line.startswith("["):
                current = parts.setdefault(line.strip("[]"), [])
            elif "templates" in parts and current is parts["templates"]:
                current.append(line)
            else:
                current += line.split(" / ")
        nouns = parts["nouns"]
        compounds = [
            part + (noun.lower() if part.isascii() or code == "de" else noun)
            for noun in nouns
            for part in parts["parts"]
        ]
        # Shuffled, because otherwise all compounds of the same noun would be equally frequent.
        Random(code).shuffle(compounds)
        slots = {"A": parts["adjectives"], "N": nouns + compounds, "P": parts["places"], "V": parts["verbs"]}
        return cls(
            code=code,
            sections=parts["sections"],
            internal=parts["internal"][0],
            titles=parts["titles"],
            templates=parts["templates"],
            slots={slot: Words(words) for slot, words in slots.items()},
        )

    def fill(self, template: str, rng: Random, topic: Topic) -> str:
        """Fill the slots of a template: N(oun), A(djective), V(erb), P(lace), T(opic)."""

        def word(match: re.Match[str]) -> str:
            if match[1] == "T":
                title = topic.title(self.code)
                return title.lower() if self.code == "en" else title
            return self.slots[match[1]].draw(rng)

        text = SLOT.sub(word, template)
        return text[0].upper() + text[1:]

    def title(self, rng: Random, topic: Topic) -> str:
        """Return a headline."""
        return self.fill(rng.choice(self.titles), rng, topic)

    def sentence(self, rng: Random, topic: Topic) -> str:
        return self.fill(rng.choice(self.templates), rng, topic)

    def paragraph(self, rng: Random, topic: Topic, words: int) -> str:
        """Return enough sentences for about that many words."""
        sentences: list[str] = []
        while words > 0:
            sentences.append(self.sentence(rng, topic))
            words -= count_words(sentences[-1])
        return ("" if self.code == "zh" else " ").join(sentences)

    def body(self, rng: Random, topic: Topic, words: int) -> str:
        """Return an HTML text with headings, paragraphs and a list."""
        parts = [f"<p><strong>{self.paragraph(rng, topic, 25)}</strong></p>"]
        while words > 0:
            size = min(words, rng.randint(50, 120))
            if rng.random() < 0.3:
                parts.append(f"<h2>{self.title(rng, topic)}</h2>")
            parts.append(f"<p>{self.paragraph(rng, topic, size)}</p>")
            words -= size
        items = "".join(f"<li>{self.title(rng, topic)}</li>" for _ in range(3))
        return "\n".join([*parts, f"<ul>{items}</ul>"])


@cache
def language(code: str) -> Language:
    """Return the vocabulary of a language, which is read once."""
    return Language.load(code)


def count_words(text: str) -> int:
    """Count words; two Chinese characters are one."""
    han = len(HAN.findall(text))
    return han // 2 if han else len(text.split())


def slug(title: str) -> str:
    """Return the form of a title in a URL: ASCII letters, digits and hyphens."""
    text = unicodedata.normalize("NFKD", title.translate(SPELLED_OUT))
    text = text.encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", text).strip("-").split("-")
    return "-".join(words[:8])
