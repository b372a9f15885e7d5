"""Documents with texts: their words have the frequencies of real texts, and look like words."""

from benchmarks.documents import Document
from benchmarks.documents import documents
from benchmarks.documents import folders
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import cache
from itertools import accumulate
from random import Random


SEED = 815
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
#: Number of words in the vocabulary; the word with the number n occurs 1/n as often as the first one (Zipf).
VOCABULARY = 20_000
#: Numbers of words, by the share of texts that contain them: at least a third, a few in a hundred, one or two in a thousand.
FREQUENT = range(5, 25)
USUAL = range(300, 1_200)
RARE = range(8_000, 12_000)
#: Words in a text: the parameters of a log-normal distribution, and its limits.
LENGTH = (4.5, 0.8)
SHORTEST, LONGEST = 10, 1_500


def word(number: int) -> str:
    """Return the word with that *number*: three syllables or more, different for each number."""
    # 74,507 and 60 ** 3 have no common divisor. Words with similar frequencies begin with different letters.
    number = (number * 74_507 + 12_345) % len(SYLLABLES) ** 3
    parts = []
    for _ in range(3):
        number, part = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[part])
    return "".join(parts)


WORDS = [word(number) for number in range(VOCABULARY)]
WEIGHTS = list(accumulate(1 / number for number in range(1, VOCABULARY + 1)))


def text(rng: Random, count: int) -> str:
    """Return *count* words."""
    return " ".join(rng.choices(WORDS, cum_weights=WEIGHTS, k=count))


def documents_with_texts(count: int) -> Iterator[Document]:
    """Yield *count* documents; the same ones each time."""
    rng = Random(SEED)
    for document in documents(count):
        length = min(LONGEST, max(SHORTEST, int(rng.lognormvariate(*LENGTH))))
        yield replace(document, title=text(rng, 4).capitalize(), description=text(rng, 15), text=text(rng, length))


# -- the texts of a site


@dataclass(frozen=True)
class Vocabulary:
    """Words to search for, by the share of texts that contain them, and pairs of a frequent and a usual word."""

    frequent: Sequence[str]
    usual: Sequence[str]
    rare: Sequence[str]
    pairs: Sequence[str]


@dataclass(frozen=True)
class Texts:
    """The documents of a site, the titles of their folders, and the words to search for."""

    documents: Sequence[Document]
    folders: Sequence[str]
    words: Vocabulary

    @property
    def languages(self) -> list[str]:
        return sorted({document.language for document in self.documents} - {""})


def two_words(number: int) -> str:
    """Return the pair of a frequent and a usual word with that *number*; the first 18,000 are different."""
    usual = USUAL[(number * 7 + number // len(USUAL)) % len(USUAL)]
    return f"{word(FREQUENT[number % len(FREQUENT)])} {word(usual)}"


GENERATED = Vocabulary(
    tuple(map(word, FREQUENT)),
    tuple(map(word, USUAL)),
    tuple(map(word, RARE)),
    tuple(map(two_words, range(len(FREQUENT) * len(USUAL)))),
)


@cache
def generated_texts(count: int) -> Texts:
    """Return a site with *count* documents of generated words."""
    return Texts([*documents_with_texts(count)], folder_titles(count), GENERATED)


def folder_titles(count: int) -> list[str]:
    """Return the titles of the folders of a site with *count* generated documents."""
    return [f"Folder {number}" for number in range(folders(count))]
