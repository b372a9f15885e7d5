"""Wrong values sent to our panels over REST: an answer that Volto can show beside the fields."""

from plone.pgcatalog.controlpanel.panel import Configlet
from plone.restapi.deserializer.controlpanels import ControlpanelDeserializeFromJson
from typing import Any
from zExceptions import BadRequest
from zope.component import adapter

import json


#: Characters on which a reader of JSON in HTML, or in Python's quotes, stumbles: as JSON may write them instead.
ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "'<>&"}


def readable_errors(errors: list[Any]) -> str:
    """Return *errors*, ``{"message", "field", "error"}`` each, as JSON in ASCII without apostrophes and HTML.

    plone.restapi answers Python's notation of the list.  Volto reads a message as HTML, and then as JSON: at once,
    with quotes in place of apostrophes, or with backslashes before quotes as well.  This text survives all of it.
    """
    return json.dumps(errors, default=str).translate(ESCAPES)


@adapter(Configlet)
class PanelDeserializer(ControlpanelDeserializeFromJson):
    """Stores what is sent to one of our panels; raises BadRequest with ``readable_errors`` for what is wrong."""

    def __call__(self, mask_validation_errors: bool = True) -> None:
        try:
            super().__call__(mask_validation_errors)
        except BadRequest as error:
            match error.args:
                case [list(errors)]:
                    raise BadRequest(readable_errors(errors)) from error
            raise
