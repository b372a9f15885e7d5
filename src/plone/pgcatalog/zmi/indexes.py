"""The tab *Indexes & Metadata*: what is indexed, by what in PostgreSQL, and whether it is used."""

from dataclasses import dataclass
from plone.pgcatalog.advice.statistics import ColumnStatistics
from plone.pgcatalog.advice.statistics import IndexStatistics
from plone.pgcatalog.advice.statistics import Statistics
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile


ROWS = "SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass(%s)"


@dataclass(frozen=True, slots=True)
class Line:
    """An index of the catalog, with its columns and SQL indexes."""

    name: str
    type: str
    sources: str
    columns: list[ColumnStatistics]
    sql_indexes: list[IndexStatistics]
    distinct: str

    @property
    def bytes(self) -> int:
        return sum(index.bytes for index in self.sql_indexes)

    @property
    def scans(self) -> int:
        return sum(index.scans for index in self.sql_indexes)


class IndexesPage(ManagePage):
    """Shows indexes and metadata columns; the forms call the tool's own actions."""

    template = ViewPageTemplateFile("templates/indexes.pt")
    name = "manage_catalogIndexes"

    # -- for the template

    def lines(self) -> list[Line]:
        """Return the indexes in the order of their names; the figures are those of the last ANALYZE."""
        state = self.catalog.view().read_state()
        execute = self.catalog.session.execute
        rows, columns, indexes = 0, {}, []
        if state is not None:
            [(rows,)] = execute(ROWS, (quote(state.relation),))
            statistics = Statistics(execute, state.relation)
            columns, indexes = statistics.columns(), statistics.indexes()
        names = sorted(self.catalog.indexes, key=str.lower)
        return [self._line(name, max(rows, 0), columns, indexes) for name in names]

    def _line(self, name: str, rows: int, columns: dict[str, ColumnStatistics], indexes: list[IndexStatistics]) -> Line:
        translator = self.catalog.translator(name)
        index = translator.index
        own = [columns[c.name] for c in translator.columns() if c.name in columns]
        using = [i for i in indexes if any(c.name in i.columns for c in own)]
        sources = ", ".join(map(str, index.getIndexSourceNames())) if hasattr(index, "getIndexSourceNames") else ""
        return Line(name, index.meta_type, "" if sources == name else sources, own, using, distinct(own, rows))

    def metadata(self) -> list[str]:
        return sorted(self.catalog.names, key=str.lower)


def distinct(columns: list[ColumnStatistics], rows: int) -> str:
    """Return about how many values an index with *columns* has, for people to read; empty when nobody knows.

    pg_stats gives the number itself, or negative the part of the rows.
    """
    found = [c for c in columns if c.distinct]
    if not found or any(c.type == "tsvector" for c in columns):
        return ""
    number = found[0].distinct if found[0].distinct > 0 else -found[0].distinct * rows
    text = f"{number:,.0f}"
    return _("${number} sets", {"number": text}) if found[0].type.endswith("[]") else text
