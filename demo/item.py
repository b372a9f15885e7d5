"""One object of the plan."""

from dataclasses import dataclass
from dataclasses import field
from datetime import datetime
from demo.words import Topic
from typing import Any


LANGUAGE_TITLES = {"de": "Deutsch", "en": "English", "zh": "中文"}
#: What Plone calls the languages.
LANGUAGE_CODES = {"de": "de", "en": "en", "zh": "zh-cn"}


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
    #: What only its type has, by the names of its schema.
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        return self.path.count("/") + 1
