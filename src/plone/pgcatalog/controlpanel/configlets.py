"""The control panels for plone.restapi's ``@controlpanels``, by which Volto shows them, and wrong values sent to them."""

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


#: Characters on which a reader of JSON in HTML, or in Python's quotes, stumbles: as JSON may write them instead.
ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "'<>&"}


@adapter(Interface, IPGCatalogLayer)
class Configlet(RegistryConfigletPanel):
    """A panel for plone.restapi: for those who may use the one in Classic UI, else Unauthorized.

    The service asks for less: everybody who may see the overview of Site Setup may read and write every panel.
    """

    schema_prefix = PREFIX
    configlet_category_id = "Products"
    fields: Any = None

    @property
    def schema(self) -> Any:
        # Plone names the panels that the user has the permission for; reading and writing begin here.
        if self.configlet is None:
            raise Unauthorized(f"you may not use the control panel {self.configlet_id!r}")
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
