"""Pages, and questions with a known page: the data for measuring search by meaning.

The written pages are in ``benchmarks/meaning_set``: of an intranet in English, of a town hall in German.  Pages of the
demo's generators are mixed with them, as on a real site.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from demo.words import language
from demo.words import topics
from pathlib import Path
from random import Random

import re
import snowballstemmer


FOLDER = Path(__file__).parent / "meaning_set"
#: File -> the language of its pages.
FILES = {"intranet.txt": "en", "town.txt": "de"}
#: Number of pages of the demo's generators, and of words in each.
GENERATED, GENERATED_WORDS = 240, 120
SEED = 31
#: Words without information about a page.
STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any anyone anybody are as at away back be been before behind below between but by
    can could did do does during each every everybody everyone for from get getting give given go goes had has have having he her
    here him his how i if in inside into is it its just keep like make makes making many may me more most much must my need needs
    needed no nobody none nor not of off old on once one only onto or other others our out over own per put she so some somebody
    someone something somewhere still such than that the their them then there these they this those three to together two until
    up us use used using very want wants was we were what when where which while who whom whose why will with within without
    would you your yours

    ab aber alle allem allen aller alles als also alt alte alten am an andere anderen ans auch auf aus bei beim bekommen bekomme
    bekommt bin bis bist da dabei dafür daran daraus darf das dass dein dem den denen der des dich die dies diese diesem diesen
    dieser doch dort du durch ein eine einem einen einer eines einmal er es etwa etwas euch für gegen gehen geht gibt ging hat
    hatte habe haben hinter hin ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja je jede jedem jeden jeder jedes
    jemand kann können könnte kein keine keinem keinen keiner los machen macht man mehr mein meine meinem meinen meiner mich mir
    mit muss müssen nach nehmen nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner sich sie sind so soll
    sollen sonst über um und uns unser unsere unter viel viele vom von vor war warum was weg weiter wenn wer werde werden wie
    will wir wird wo wohin wollen wurde zu zum zur zwei zwischen
    """.split()  # noqa: SIM905
)

_WORD = re.compile(r"[^\W\d_]+")
_STEMMERS = [snowballstemmer.stemmer(name) for name in ("english", "german")]


@dataclass(frozen=True)
class Page:
    """A page with its *words*, a question in words of the page; "" for a page of the generators."""

    id: str
    language: str
    title: str
    text: str
    words: str = ""


@dataclass(frozen=True)
class Question:
    """A question, and the id of its page; with *in_own_words* it has words of the page, otherwise none."""

    text: str
    language: str
    page: Page
    in_own_words: bool

    @property
    def crosses(self) -> bool:
        """True for a question in another language than its page."""
        return self.language != self.page.language


def written() -> Iterator[tuple[Page, list[Question]]]:
    """Yield the written pages with their questions."""
    for file, spoken in FILES.items():
        blocks = (FOLDER / file).read_text("utf-8").split("\n\n")
        for number, block in enumerate(block for block in blocks if block.startswith("title: ")):
            lines = block.strip().split("\n")
            named = [
                (name, line) for name, colon, line in (line.partition(": ") for line in lines) if _is_name(name, colon)
            ]
            [title], [words] = ([line for name, line in named if name == wanted] for wanted in ("title", "words"))
            text = "\n".join(line for line in lines if not _is_name(*line.partition(": ")[:2]))
            page = Page(f"{spoken}-{number}", spoken, title, text, words)
            questions = [Question(line, name, page, False) for name, line in named if name in FILES.values()]
            yield page, [*questions, Question(words, spoken, page, True)]


def _is_name(name: str, colon: str) -> bool:
    return bool(colon) and name in ("title", "words", *FILES.values())


def generated() -> Iterator[Page]:
    """Yield pages of the demo's generators, half of them in each language; the same ones each time."""
    chance = Random(SEED)
    for number in range(GENERATED):
        spoken = language(("de", "en")[number % 2])
        topic = chance.choice(topics())
        title, text = spoken.title(chance, topic), spoken.paragraph(chance, topic, GENERATED_WORDS)
        yield Page(f"demo-{number}", spoken.code, title, text)


def unanswered() -> tuple[list[str], list[str]]:
    """Return questions without an answer: (about other subjects than the pages, about their subjects)."""
    _, strange, _, near = (FOLDER / "unanswered.txt").read_text("utf-8").split("\n\n")
    return strange.split("\n"), near.strip().split("\n")


def labelled() -> tuple[list[Page], list[Question]]:
    """Return all pages, and all questions."""
    pages = [*written()]
    return [*(page for page, _ in pages), *generated()], [question for _, of_page in pages for question in of_page]


def stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of *text* in both languages, because some words exist in both."""
    words = {word.lower() for word in _WORD.findall(text)}
    words = {word for word in words if word not in STOP_WORDS and len(word) > 1}
    return frozenset(stemmer.stemWord(word) for stemmer in _STEMMERS for word in words)
