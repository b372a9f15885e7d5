"""The texts that people see can be translated, and are translated into German."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog import i18n
from plone.pgcatalog.i18n import _
from scripts import messages

import pytest
import re


TEMPLATES = sorted(messages.PACKAGE.rglob("*.pt"))
MESSAGES = messages.messages()
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


def unnamed(element: messages.Element) -> bool:
    """Return whether a part of the translated text of *element* has no name, or the name of another part."""
    names = [part.attributes.get("i18n:name") for part in element.parts if isinstance(part, messages.Element)]
    return None in names or len(set(names)) < len(names)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(messages.PACKAGE).as_posix())
def test_every_text_of_a_page_is_marked_and_its_parts_have_names(path: Path) -> None:
    page = messages.parsed(path)
    assert list(untranslated(page)) == []
    marked = [each for each in page.elements if "i18n:translate" in each.attributes and not each.is_replaced]
    assert [each.message for each in marked if unnamed(each)] == []
    assert f'i18n:domain="{messages.DOMAIN}"' in path.read_text("utf-8")


def test_translations_are_registered_once() -> None:
    directives = [path.read_text("utf-8").count("registerTranslations") for path in messages.PACKAGE.rglob("*.zcml")]
    assert sum(directives) == 1


def test_template_of_catalogs_has_every_message_in_english() -> None:
    """Otherwise run scripts/messages.py."""
    assert (messages.LOCALES / f"{messages.DOMAIN}.pot").read_text("utf-8") == messages.written({})
    assert len(MESSAGES) > 300
    assert [message for message in MESSAGES if ID.fullmatch(message)] == []


def test_german_catalog_is_complete_and_compiled() -> None:
    """No message is missing or superfluous, and the variables are the message's own."""
    [path] = messages.LOCALES.glob(f"*/LC_MESSAGES/{messages.DOMAIN}.po")
    found = messages.translations(path)
    assert path.parts[-3] == "de"
    assert [message for message in MESSAGES if not found.get(message)] == []
    assert found.keys() <= MESSAGES.keys()
    for message, (default, _files) in MESSAGES.items():
        assert sorted(VARIABLE.findall(found[message])) == sorted(VARIABLE.findall(default)), message
    assert path.with_suffix(".mo").read_bytes() == messages.compiled(path)


def test_english_messages_can_be_values_of_messages() -> None:
    line = _("Line ${number}: ${problem}", {"number": "3", "problem": _("${line} names no word", {"line": "'a'"})})
    assert i18n.english(line) == "Line 3: 'a' names no word"
    assert i18n.english(i18n.joined([line, "costs $5", _("Done")])) == "Line 3: 'a' names no word; costs $5; Done"
    assert i18n.english("costs ${price}") == "costs ${price}"


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
    found = i18n.restored(i18n.stored(message))
    assert (found, i18n.english(found), type(found)) == (message, i18n.english(message), type(message))
