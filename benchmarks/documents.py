"""The documents of the benchmark, as pure data: the same seed creates the same documents for every backend."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta
from itertools import accumulate
from random import Random


SEED = 4711
TAGS = [f"tag{number}" for number in range(15)]
#: Drawn with the frequencies of real texts: the n-th word occurs 1/n as often as the first one.
WORDS = [f"word{number}" for number in range(2000)]
WEIGHTS = list(accumulate(1 / number for number in range(1, len(WORDS) + 1)))
STATES = {"published": 70, "private": 20, "pending": 10}
CREATORS = [f"author{number}" for number in range(20)]
#: Documents in a folder, if there are enough for more than ten folders.
FOLDER_SIZE = 100
FIRST_DAY = datetime(2016, 1, 1)
DAYS = 3600


@dataclass(frozen=True, slots=True)
class Document:
    """The values of one document."""

    number: int
    folder: str
    id: str
    title: str
    description: str
    tags: tuple[str, ...]
    state: str
    creator: str
    created: datetime
    #: the text as HTML, inside of a paragraph
    text: str = ""
    language: str = ""
    #: paths of related documents, which come before this one
    related: tuple[str, ...] = ()

    @property
    def uid(self) -> str:
        return f"{self.number:032x}"


def folders(count: int) -> int:
    """Return the number of folders for *count* documents."""
    return max(10, count // FOLDER_SIZE)


def documents(count: int, site: int | None = None) -> Iterator[Document]:
    """Yield *count* documents, in the folders of a site with *site* documents (by default *count*)."""
    rng = Random(SEED)
    number_of_folders = folders(count if site is None else site)
    states, shares = list(STATES), list(STATES.values())
    for number in range(count):
        tags = tuple(sorted(rng.sample(TAGS, rng.randint(0, 4))))
        title = " ".join(rng.choices(WORDS, cum_weights=WEIGHTS, k=4))
        yield Document(
            number=number,
            folder=f"folder{number % number_of_folders}",
            id=f"doc{number}",
            title=f"Document {title} {number}",
            description=" ".join([*rng.choices(WORDS, cum_weights=WEIGHTS, k=20), *tags]),
            tags=tags,
            state=rng.choices(states, shares)[0],
            creator=rng.choice(CREATORS),
            created=FIRST_DAY + timedelta(minutes=rng.randrange(DAYS * 1440)),
        )
