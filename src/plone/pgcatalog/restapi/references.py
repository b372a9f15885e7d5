"""UIDs that services of plone.restapi will search for one by one: announced, so that one search reads all."""

from Acquisition import aq_base
from OFS.interfaces import ITraversable
from plone.pgcatalog.core.references import announce
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.restapi.interfaces import IBlockFieldSerializationTransformer
from typing import Any
from zope.annotation.interfaces import IAnnotations
from zope.component import adapter
from zope.interface import implementer
from zope.interface import Interface


#: Annotation of a request: the objects whose blocks have been announced, by their ``id``.
ANNOUNCED = "plone.pgcatalog.announced"
#: The type of block by which plone.restapi serializes a JSON field without blocks.
JSON_FIELD = "jsonfield"


@implementer(IBlockFieldSerializationTransformer)
@adapter(Interface, IPGCatalogLayer)
class BlockReferences:
    """Announces the UIDs in all blocks of an object when the first of them is serialized; changes no block."""

    order = -1000
    block_type = None

    def __init__(self, context: Any, request: Any) -> None:
        self.context = context
        self.request = request

    def __call__(self, block: dict[str, Any]) -> dict[str, Any]:
        """Return *block* unchanged."""
        if block.get("@type") == JSON_FIELD:
            announce(self.context, None, block)
            return block
        # plone.restapi creates a new adapter for each block.
        announced = IAnnotations(self.request).setdefault(ANNOUNCED, {})
        content = aq_base(self.context)
        if id(content) not in announced and ITraversable.providedBy(self.context):
            announced[id(content)] = content
            announce(self.context, ("blocks", self.context.getPhysicalPath()), getattr(content, "blocks", None))
        return block
