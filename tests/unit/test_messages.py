"""The texts that people see can be translated, and are translated into German."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import joined
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.i18n import stored
from scripts import messages

import pytest
import re


TEMPLATES = sorted(messages.PACKAGE.rglob("*.pt"))
CATALOGS = sorted(messages.LOCALES.glob(f"*/LC_MESSAGES/{messages.DOMAIN}.po"))
#: Attributes with texts for people.
READ = ("title", "aria-label", "placeholder", "data-question")
LETTERS = re.compile(r"[^\W\d_]{2,}")
#: Elements whose content is not in a natural language.
CODE = {"code", "pre", "script", "style"}
#: Examples of input, units, and names of formats.
NAMES = {"/path", "RSS 1.0"}
VARIABLE = re.compile(r"\$\{\w+\}")
#: An id instead of a text.
ID = re.compile(r"[a-z]+(_[a-z]+)+")


def name_of(path: Path) -> str:
    return path.relative_to(messages.PACKAGE).as_posix()


def untranslated(element: messages.Element) -> Iterator[str]:
    """Yield the texts in *element* outside of all marked elements."""
    attributes = element.attributes
    marked = attributes.get("i18n:attributes", "")
    for name in (*READ, *(["value"] if attributes.get("type") == "submit" and element.tag == "input" else [])):
        text = attributes.get(name, "")
        if LETTERS.search(text) and text not in NAMES and name not in re.split(r"[;\s]+", marked):
            yield f"{name}={text}"
    if element.is_replaced or element.tag in CODE:
        return
    text = re.sub(r"&\w+;|\$\{[^}]*\}", "", element.text)
    if LETTERS.search(text) and "i18n:translate" not in attributes:
        yield " ".join(text.split())
    for part in element.parts:
        if isinstance(part, messages.Element):
            yield from untranslated(part)


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_every_text_of_a_page_is_marked(path: Path) -> None:
    assert list(untranslated(messages.parsed(path))) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_every_part_of_a_text_has_a_name(path: Path) -> None:
    elements = [e for e in messages.parsed(path).elements if "i18n:translate" in e.attributes and not e.is_replaced]
    for element in elements:
        names = [part.attributes.get("i18n:name") for part in element.parts if isinstance(part, messages.Element)]
        assert None not in names, element.message
        assert len(set(names)) == len(names), element.message


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_every_page_has_the_domain(path: Path) -> None:
    assert f'i18n:domain="{messages.DOMAIN}"' in path.read_text("utf-8")


def test_translations_are_registered_once() -> None:
    directives = [path.read_text("utf-8").count("registerTranslations") for path in messages.PACKAGE.rglob("*.zcml")]
    assert sum(directives) == 1


def test_messages_are_english_texts() -> None:
    assert [message for message in messages.messages() if ID.fullmatch(message)] == []


def test_the_template_of_catalogs_has_every_message() -> None:
    """Otherwise run scripts/messages.py."""
    assert (messages.LOCALES / f"{messages.DOMAIN}.pot").read_text("utf-8") == messages.written({})
    assert len(messages.messages()) > 300


@pytest.mark.parametrize("path", CATALOGS, ids=lambda path: path.parts[-3])
def test_a_catalog_is_complete_and_compiled(path: Path) -> None:
    """No message is missing or superfluous, and the variables are the message's own."""
    found, known = messages.translations(path), messages.messages()
    assert [message for message in known if not found.get(message)] == []
    assert [message for message in found if message not in known] == []
    for message, (default, _files) in known.items():
        assert sorted(VARIABLE.findall(found[message])) == sorted(VARIABLE.findall(default)), message
    assert path.with_suffix(".mo").read_bytes() == messages.compiled(path)


def test_german_is_there() -> None:
    assert [path.parts[-3] for path in CATALOGS] == ["de"]


def test_english_messages_can_be_values_of_messages() -> None:
    line = _("Line ${number}: ${problem}", {"number": "3", "problem": _("${line} names no word", {"line": "'a'"})})
    assert english(line) == "Line 3: 'a' names no word"
    assert english(joined([line, "costs $5", _("Done")])) == "Line 3: 'a' names no word; costs $5; Done"
    assert english("costs ${price}") == "costs ${price}"


@pytest.mark.parametrize(
    "message",
    [
        _("Done"),
        _("Line ${number}: ${problem}", {"number": "3", "problem": _("${line} names no word", {"line": '"ä"'})}),
        "no message",
        "[1, 2]",
        '["", null]',
        "5",
        "",
    ],
)
def test_a_stored_message_is_restored(message: str) -> None:
    found = restored(stored(message))
    assert (found, english(found), type(found)) == (message, english(message), type(message))
