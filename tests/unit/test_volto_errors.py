"""Volto can read the errors of our control panels: every message, in English and German, with any typed text."""

from plone.pgcatalog.controlpanel.configlets import readable_errors
from plone.pgcatalog.fulltext.tuning import problems
from plone.pgcatalog.fulltext.tuning import READERS
from plone.pgcatalog.i18n import english
from scripts import messages
from tests.unit.volto_reads import parsed
from tests.unit.volto_reads import read_by_volto
from tests.unit.volto_reads import text_of

import pytest
import re


#: Strings that break Python's quotes, JSON or HTML.
HOSTILE = (
    "climate's",
    '"quoted"',
    "both ' and \"",
    "back\\slash",
    "<b>bold</b>",
    "a & b &lt;",
    "\x01 \u200b \U000e0001",
    "ä€",
)
VARIABLE = re.compile(r"\$\{\w+\}")
[GERMAN] = messages.LOCALES.glob(f"de/LC_MESSAGES/{messages.DOMAIN}.po")


def test_every_message_is_read_as_it_was_written() -> None:
    texts = [*messages.messages(), *messages.translations(GERMAN).values()]
    assert len(texts) > 500
    for typed in HOSTILE:
        filled = dict.fromkeys(VARIABLE.sub(lambda _, typed=typed: typed, text) for text in texts)
        errors = [{"message": text, "field": "synonyms", "error": "ValidationError"} for text in filled]
        assert read_by_volto(readable_errors(errors)) == errors
        # The texts without variables are read once.
        texts = [text for text in texts if VARIABLE.search(text)]


def test_each_parser_of_volto_that_succeeds_returns_the_same() -> None:
    errors = [{"message": typed, "field": "pins", "error": "ValidationError"} for typed in HOSTILE]
    found = list(parsed(text_of(readable_errors(errors))))
    assert found
    assert all(each == errors for each in found)


@pytest.mark.parametrize("name", READERS)
def test_python_s_notation_of_the_list_is_not_enough(name: str) -> None:
    """The reason for the law above: an invalid line is quoted in the message."""
    errors = [{"message": english(problem), "field": name} for problem in problems(name, "climate's")]
    assert errors
    assert read_by_volto(str(errors)) != errors
    assert read_by_volto(readable_errors(errors)) == errors
