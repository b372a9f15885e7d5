"""The page *Object information*: all that the catalog has about one path."""

from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexing.objects import is_rid
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.request import number_in
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.zmi.page import ManagePage
from plone.pgcatalog.zmi.page import readable
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from Products.ZCTextIndex.ZCTextIndex import ZCTextIndex
from typing import Any
from zExceptions import NotFound

import json


#: Longer values are cut for the page.
LONGEST = 2000


class InformationPage(ManagePage):
    """Shows the row that the field ``rid`` names; NotFound for any other value."""

    template = ViewPageTemplateFile("templates/information.pt")
    name = "manage_objectInformation"

    rid = 0
    path = ""
    #: index name -> what it holds for the row
    values: dict[str, Any] = {}

    @property
    def inside(self) -> Any:
        """What answers as ZCatalog's own page is answered."""
        return self.context._catalog

    def __call__(self) -> Any:
        text = self.field("rid")
        rid = number_in(text)
        path = self.inside.paths.get(rid) if is_rid(rid) else None
        if rid is None or path is None:
            raise NotFound(f"no row {text!r:.50} in this catalog")
        self.rid, self.path = rid, path
        found = self.inside.getIndexDataForRID(rid)
        self.values = {name: found[name] for name in sorted(found, key=str.lower)}
        self.request.set("management_view", self.translated(_("Catalog")))  # the tab that is marked
        return super().__call__()

    def index(self, name: str) -> Any:
        return self.inside.indexes[name]

    def is_text(self, name: str) -> bool:
        return isinstance(self.index(name), ZCTextIndex)

    # -- for the template

    def object_url(self) -> str:
        """Return the address of the object's management page; empty when no object is there."""
        obj = self.context.unrestrictedTraverse(self.path, None)
        return "" if obj is None else f"{obj.absolute_url()}/manage_workspace"

    def metadata(self) -> list[tuple[str, str]]:
        found = self.inside.getMetadataForRID(self.rid)
        return [(name, shown(found[name])) for name in sorted(found, key=str.lower)]

    def indexes(self) -> list[tuple[str, str, str]]:
        """Return name, type and value of each index; texts have a part of their own."""
        return [(n, self.index(n).meta_type, shown(v)) for n, v in self.values.items() if not self.is_text(n)]

    def texts(self) -> list[tuple[str, str]]:
        """Return name and words of each text index, the words in their order."""
        return [(name, cut(" ".join(words))) for name, words in self.values.items() if self.is_text(name)]

    def columns(self) -> list[tuple[str, str]]:
        """Return the columns of the row in PostgreSQL, as its table has them."""
        return [(name, shown(value)) for name, value in self.row.items() if name != "idx"]

    def idx(self) -> str:
        """Return the readable JSON of the row."""
        found = self.catalog.view().idx([self.rid]).get(self.rid, {})
        return cut(json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True), 10 * LONGEST)

    @property
    def row(self) -> dict[str, Any]:
        view = self.catalog.view()
        names = ["rid", "path", "zoid", *view.layout.names]

        def statement(stored: Stored) -> Statement:
            lists = bind.lists_sql(stored)
            columns = ", ".join(f"{lists.get(name, quote(name))}::text" for name in names)
            return bind.select(columns, Condition("rid = %s", (self.rid,)), stored)

        [values] = view.run("rows", view.binding(statement))
        return dict(zip(names, values, strict=True))


def shown(value: Any) -> str:
    """Return *value* as the page shows it."""
    return cut(readable(value) if isinstance(value, str) else "" if value is None else repr(value))


def cut(text: str, longest: int = LONGEST) -> str:
    """Return *text*, its end replaced by a note when it is very long."""
    if len(text) <= longest:
        return text
    return _("${text} … (${number} characters)", {"text": text[:longest], "number": f"{len(text):,}"})
