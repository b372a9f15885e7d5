"""Volto's parsing of a control panel's error: as HTML, and then as JSON in one of three ways."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import json


class Text(HTMLParser):
    """The text of a document, as returned by a browser's DOMParser."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.feed(html)
        self.close()

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def parsed(text: str) -> Iterator[Any]:
    """Yield the results of Volto's tryParseJSON for *text*, one for each of its three ways that succeeds."""
    for attempt in (text, text.replace("'", '"'), text.replace('"', '\\"').replace("'", '"')):
        try:
            yield json.loads(attempt)
        except ValueError:
            continue


def text_of(html: str) -> str:
    """Return the text of *html*."""
    return "".join(Text(html).parts)


def read_by_volto(message: str) -> Any:
    """Return the errors that Volto's control panel reads in the *message* of an answer, None for an unreadable one."""
    return next(parsed(text_of(message)), None)
