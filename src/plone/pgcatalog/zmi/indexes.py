"""The tab *Indexes & Metadata*: the indexes, their columns and SQL indexes in PostgreSQL, and their use."""

from dataclasses import dataclass
from plone.pgcatalog.advice import builder
from plone.pgcatalog.advice.advice import Advice
from plone.pgcatalog.advice.advice import AdviceError
from plone.pgcatalog.advice.advice import advise
from plone.pgcatalog.advice.advice import find_candidate
from plone.pgcatalog.advice.builder import BuildError
from plone.pgcatalog.advice.builder import IndexTarget
from plone.pgcatalog.advice.builder import Registered
from plone.pgcatalog.advice.builder import registered
from plone.pgcatalog.advice.candidates import column_statistics
from plone.pgcatalog.advice.candidates import ColumnStatistics
from plone.pgcatalog.advice.candidates import duplicates
from plone.pgcatalog.advice.candidates import index_statistics
from plone.pgcatalog.advice.candidates import IndexStatistics
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.queue.long import JobError
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any


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
        """Return the indexes by name; their figures are from the last ANALYZE."""
        state = self.catalog.view().read_state()
        execute = self.catalog.session.execute
        rows, columns, indexes = 0, {}, []
        if state is not None:
            [(rows,)] = execute(ROWS, (quote(state.relation),))
            columns = column_statistics(execute, state.relation)
            indexes = index_statistics(execute, state.relation)
        names = sorted(self.catalog.indexes, key=str.lower)
        return [self._line(name, max(rows, 0), columns, indexes) for name in names]

    def _line(self, name: str, rows: int, columns: dict[str, ColumnStatistics], indexes: list[IndexStatistics]) -> Line:
        translator = self.catalog.translator(name)
        index = translator.index
        its_columns = [columns[c.name] for c in translator.columns() if c.name in columns]
        using = [i for i in indexes if any(c.name in i.columns for c in its_columns)]
        sources = ", ".join(map(str, index.getIndexSourceNames())) if hasattr(index, "getIndexSourceNames") else ""
        return Line(
            name, index.meta_type, "" if sources == name else sources, its_columns, using, distinct(its_columns, rows)
        )

    def metadata(self) -> list[str]:
        return sorted(self.catalog.names, key=str.lower)


def distinct(columns: list[ColumnStatistics], rows: int) -> str:
    """Return a text with the estimated number of different values of an index with *columns*; empty if it is unknown.

    ``n_distinct`` of pg_stats is this number or, if negative, the fraction of the rows.
    """
    counted = [c for c in columns if c.distinct]
    if not counted or any(c.type == "tsvector" for c in columns):
        return ""
    number = counted[0].distinct if counted[0].distinct > 0 else -counted[0].distinct * rows
    text = f"{number:,.0f}"
    return _("${number} sets", {"number": text}) if counted[0].type.endswith("[]") else text


class IndexAdvicePage(ManagePage):
    """Shows the SQL indexes.

    POST with ``advise`` searches for better ones.  ``apply``, ``build``, ``cancel`` and ``drop`` have the name of an advised
    index.  Form fields never become part of SQL.
    """

    template = ViewPageTemplateFile("templates/advice.pt")
    name = "manage_index_advice"

    advice: Advice | None = None
    problem = ""

    def post(self) -> Any:
        form = self.request.form
        if "advise" in form:
            self._advise()
            return self.template()
        for action in (self.apply, self.build, self.cancel, self.drop):
            name = form.get(action.__name__)
            if isinstance(name, str):
                return self.redirect(self._done(action, name))
        return self.template()

    def _advise(self) -> None:
        try:
            self.advice = advise(self.catalog)
        except AdviceError as error:
            self.problem = _("No advice: ${reason}.", mapping={"reason": error.message})

    def _done(self, action: Any, name: str) -> str:
        try:
            message: str = action(IndexTarget.of(self.catalog), name)
        except (BuildError, AdviceError, JobError) as error:
            return _("Not done: ${reason}.", mapping={"reason": error.message})
        return message

    def apply(self, target: IndexTarget, name: str) -> str:
        candidate, reason = find_candidate(self.catalog, name)
        builder.apply(target, candidate, reason)
        return _("${index} is being built.", mapping={"index": target.index(name)})

    def build(self, target: IndexTarget, name: str) -> str:
        builder.start(target, name)
        return _("${index} is being built.", mapping={"index": target.index(name)})

    def cancel(self, target: IndexTarget, name: str) -> str:
        builder.cancel(target, name)
        return _("${index}: stopped.", mapping={"index": target.index(name)})

    def drop(self, target: IndexTarget, name: str) -> str:
        builder.start(target, name, is_dropped=True)
        return _("${index} is being dropped.", mapping={"index": target.index(name)})

    # -- for the template

    def relation(self) -> str | None:
        state = self.catalog.view().read_state()
        return None if state is None else state.relation

    def registered(self, relation: str) -> list[Registered]:
        entries = registered(self.catalog.session.execute, self.catalog.zoid, relation)
        if any(entry.state in ("working", "waiting", "stopping") for entry in entries):
            self.reload_soon()
        return entries

    def indexes(self, relation: str) -> list[tuple[IndexStatistics, str]]:
        """Return all SQL indexes, each with a remark."""
        indexes = index_statistics(self.catalog.session.execute, relation)
        superfluous = duplicates(indexes)
        return [(index, self._remark(index, superfluous.get(index.name, ""))) for index in indexes]

    def _remark(self, index: IndexStatistics, better: str) -> str:
        if not index.is_valid:
            return _("invalid: its build was interrupted")
        if better:
            return _("duplicate of ${index}", mapping={"index": better})
        return "" if index.scans or index.is_unique else _("not used yet")
