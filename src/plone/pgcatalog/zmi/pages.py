"""The management pages of Plone's catalog: with forms that our actions accept, or replaced by pages of our own."""

from App.special_dtml import DTMLFile
from collections.abc import Callable
from typing import Any
from zope.component import getMultiAdapter

import re


#: A form that calls an action; the others (``&dtml-URL;``) only filter the page they are on.
_FORM = re.compile(r'<form\b([^>]*\baction="(?:&dtml-URL1;|manage_)[^>]*)>')
_METHOD = re.compile(r'\s+method="\w+"', re.IGNORECASE)


class PostForms(DTMLFile):
    """A page whose forms call actions by POST; plone.protect puts the token in."""

    def __init__(self, page: DTMLFile) -> None:
        super().__init__(page.raw.removesuffix(".dtml"), "")
        self.__name__ = page.__name__

    def read_raw(self) -> str:
        return _FORM.sub(lambda m: f'<form{_METHOD.sub("", m[1])} method="post">', super().read_raw())


def page_of(view: str) -> Callable[[Any, Any], Any]:
    """Return a method of the tool, to be published, that shows the page registered under the name *view*."""

    def show(self, REQUEST=None):  # type: ignore[no-untyped-def]
        """Show a management page"""
        return getMultiAdapter((self, REQUEST or self.REQUEST), name=view)()

    return show
