"""UUIDIndex: one value per object, and normally one object per value."""

from plone.pgcatalog.indexes.field import FieldIndexTranslator


class UUIDIndexTranslator(FieldIndexTranslator):
    """As a FieldIndex; that the real index never acquires its value is in its ``_get_object_datum``.

    ZCatalog finds only the first of several objects that share a value; here each is found.
    """

    meta_type = "UUIDIndex"
