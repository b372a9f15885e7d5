"""Numbers that JavaScript sends: it writes 128.0 as 128."""

from plone.dexterity.interfaces import IDexterityContent
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.restapi.deserializer.dxfields import DefaultFieldDeserializer
from plone.restapi.interfaces import IFieldDeserializer
from typing import Any
from zope.component import adapter
from zope.interface import implementer
from zope.schema.interfaces import IFloat

import sys


@implementer(IFieldDeserializer)
@adapter(IFloat, IDexterityContent, IPGCatalogLayer)
class NumberDeserializer(DefaultFieldDeserializer):
    """Takes whole numbers for a field of floating-point ones, as our settings are; plone.restapi's own raises WrongType.

    It cannot be for our fields alone: the registry takes no field of another class, and none with a mark of ours.
    """

    def __call__(self, value: Any) -> Any:
        if type(value) is int and abs(value) <= sys.float_info.max:
            value = float(value)
        return super().__call__(value)
