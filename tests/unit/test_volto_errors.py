"""Volto can read the errors of our control panels: every message, in English and German, with any typed text."""

from plone.pgcatalog.controlpanel.configlets import readable_errors
from plone.pgcatalog.fulltext.tuning import problems
from plone.pgcatalog.fulltext.tuning import READERS
from plone.pgcatalog.i18n import english
from scripts import messages
from tests.unit.volto_reads import parsed
from tests.unit.volto_reads import read_by_volto
from tests.unit.volto_reads import text_of

import json
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


def texts() -> list[str]:
    """Return the English and the German texts of our messages."""
    [german] = messages.LOCALES.glob(f"de/LC_MESSAGES/{messages.DOMAIN}.po")
    quoted = re.findall(r'^msgstr "(.+)"$', german.read_text("utf-8"), re.MULTILINE)
    return [*messages.messages(), *(json.loads(f'"{text}"') for text in quoted)]


@pytest.mark.parametrize("typed", HOSTILE)
def test_every_message_is_read_as_it_was_written(typed: str) -> None:
    errors = [
        {"message": VARIABLE.sub(lambda _: typed, text), "field": "synonyms", "error": "ValidationError"}
        for text in texts()
    ]
    assert len(errors) > 500
    assert read_by_volto(readable_errors(errors)) == errors


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
