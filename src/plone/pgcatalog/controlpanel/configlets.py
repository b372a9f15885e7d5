"""The control panels for plone.restapi's ``@controlpanels``, which Volto shows, and their error messages."""

from AccessControl import Unauthorized
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchPageSettings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchSettings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSettings
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.restapi.controlpanels import RegistryConfigletPanel
from plone.restapi.deserializer.controlpanels import ControlpanelDeserializeFromJson
from typing import Any
from zExceptions import BadRequest
from zope.component import adapter
from zope.interface import Interface

import json


#: Characters that break a parser of JSON in HTML or in Python's quotes -> their escapes in JSON.
ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "'<>&"}


@adapter(Interface, IPGCatalogLayer)
class Configlet(RegistryConfigletPanel):
    """A control panel for plone.restapi; raises Unauthorized unless the user may use the panel in Classic UI.

    The service itself requires less: users who may see the overview of Site Setup may read and write every panel.
    """

    schema_prefix = PREFIX
    configlet_category_id = "Products"
    fields: Any = None

    @property
    def schema(self) -> Any:
        # Plone's list contains only panels that the user may use; both reading and writing start here.
        if self.configlet is None:
            raise Unauthorized(f"no permission for the control panel {self.configlet_id!r}")
        return self.fields


class SettingsConfiglet(Configlet):
    fields = IPGCatalogSettings
    configlet_id = "pgcatalog"


class SearchConfiglet(Configlet):
    fields = IPGCatalogSearchSettings
    configlet_id = "pgcatalog-search"


class SearchPageConfiglet(Configlet):
    fields = IPGCatalogSearchPageSettings
    configlet_id = "pgcatalog-search-page"


def readable_errors(errors: list[Any]) -> str:
    """Return *errors*, dicts with ``message``, ``field`` and ``error``, as JSON in ASCII without apostrophes and HTML.

    plone.restapi would respond with Python's notation of the list.  Volto parses a message as HTML and then as JSON,
    either unchanged, with quotes for apostrophes, or with escaped quotes, too.  This text survives all of them.
    """
    return json.dumps(errors, default=str).translate(ESCAPES)


@adapter(Configlet)
class PanelDeserializer(ControlpanelDeserializeFromJson):
    """Saves values sent to a panel of this package; raises BadRequest with ``readable_errors`` for invalid ones."""

    def __call__(self, mask_validation_errors: bool = True) -> None:
        try:
            super().__call__(mask_validation_errors)
        except BadRequest as error:
            match error.args:
                case [list(errors)]:
                    raise BadRequest(readable_errors(errors)) from error
            raise
