"""Finds SQL indexes that would have sped up the recorded slow queries."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.candidates import Candidates
from plone.pgcatalog.advice.candidates import column_statistics
from plone.pgcatalog.advice.candidates import columns_of
from plone.pgcatalog.advice.candidates import Filter
from plone.pgcatalog.advice.candidates import filters_of
from plone.pgcatalog.advice.candidates import index_statistics
from plone.pgcatalog.advice.candidates import sort_columns
from plone.pgcatalog.advice.replay import compile_example
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.advice.replay import statement_of
from plone.pgcatalog.advice.trial import Measure
from plone.pgcatalog.advice.trial import Trial
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.database.connections import errors_as
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import joined
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexes.keys import MAX_BYTES as KEY_BYTES
from plone.pgcatalog.indexes.path import MAX_BYTES as PATH_BYTES
from plone.pgcatalog.indexes.simple import FieldIndexTranslator
from plone.pgcatalog.observe.log import Choice
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import log_of
from plone.pgcatalog.observe.log import SlowQueryLog
from plone.pgcatalog.observe.record import page_in
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import writable_dsn_of
from psycopg import Connection
from typing import Any


#: Number of shapes, those with the longest total time, that are examined.
SHAPES = 10
#: Number of recorded queries of a shape that are examined, and number of them that are run.
SEEN = 20
EXAMPLES = 3
#: Operations of a search that an index can speed up.
REPLAYED = ("page", "count", "rids")
#: Gain from which an index is suggested, as a fraction.
WORTH = 0.2
#: Time limit of a statement of a trial, in seconds.
SECONDS = 60


class AdviceError(MessageError):
    """No advice is possible; the message says why."""


@dataclass(frozen=True, slots=True)
class QuerySample:
    """The queries of one shape, ready to be run again; they read *columns*, None for any."""

    group: Group
    statements: tuple[Statement, ...]
    filters: tuple[Filter, ...]
    sort: tuple[str, ...]
    columns: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An index worth building, for the queries of one shape; *gain* is the fraction of their time that it saves.

    *write_cost* is a text about its cost for saves; *bytes* are extrapolated from the trial.
    """

    candidate: Candidate
    group: Group
    before: Measure
    after: Measure
    ddl: str
    write_cost: str
    bytes: int

    @property
    def gain(self) -> float:
        return max(0.0, 1 - self.after.ms / self.before.ms) if self.before.ms else 0.0

    @property
    def comparison(self) -> str:
        """The times before and after, as text."""
        return f"{self.before.ms:.2f} → {self.after.ms:.2f} ms"


@dataclass(slots=True)
class Advice:
    """Suggestions, the best first; the method by which they were found; and shapes without one, with the reason."""

    method: str
    rows: int
    suggestions: list[Suggestion] = field(default_factory=list)
    without: list[tuple[Group, str]] = field(default_factory=list)


def advise(catalog: Catalog) -> Advice:
    """Return advice for the *catalog*.

    It takes seconds and changes nothing.  Raises AdviceError without slow queries, or if the database fails.
    """
    log = log_of(catalog)
    groups = log.groups(SHAPES)
    if not groups:
        raise AdviceError(_("no slow query of this catalog has been recorded yet"))
    with adviser_of(catalog) as adviser:
        return adviser.advise(log, groups)


@contextmanager
def adviser_of(catalog: Catalog) -> Iterator["Adviser"]:
    """Yield an adviser with its own connection.  Raises AdviceError for errors of PostgreSQL."""
    state = catalog.view().read_state()
    if state is None:
        raise AdviceError(_("the catalog has no table yet"))
    with errors_as(AdviceError), connect_directly(writable_dsn_of(catalog.jar), "advice", SECONDS) as connection:
        connection.execute("SET plan_cache_mode = force_custom_plan")
        yield Adviser(catalog, connection, state.relation)


class Adviser:
    """Searches for indexes of *relation* that speed up slow queries of the *catalog*."""

    def __init__(self, catalog: Catalog, connection: Connection[Any], relation: str) -> None:
        self.catalog = catalog
        self.connection = connection
        self.relation = relation

        def execute(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
            return connection.execute(statement, values).fetchall()

        self.columns = column_statistics(execute, relation)
        self.indexes = index_statistics(execute, relation)
        [(self.rows,)] = connection.execute(f"SELECT count(*) FROM {quote(relation)}").fetchall()
        self.candidates = Candidates(self.columns, text_bytes(catalog), self.indexes)

    def advise(self, log: SlowQueryLog, groups: list[Group]) -> Advice:
        """Return advice with the best index for each of *groups*."""
        if not self.rows:
            raise AdviceError(_("the catalog is empty, so no advice is possible"))
        samples, without = [], []
        for group in groups:
            try:
                samples.append(self.sample(log, group))
            except ReplayError as error:
                without.append((group, error.message))
        advice = Advice(_("none, because no recorded query can be run again"), self.rows, without=without)
        if not samples:
            return advice
        with self.connection.transaction(force_rollback=True):
            trial = Trial(self.connection, self.relation)
            read = union(sample.columns for sample in samples)
            trial.copy(self.columns.values(), self.indexes, read, self.rows)
            for sample in samples:
                best = self._best(trial, sample)
                if isinstance(best, Suggestion):
                    advice.suggestions.append(best)
                else:
                    advice.without.append((sample.group, best))
            advice.method = trial.method
        advice.suggestions.sort(key=lambda s: -s.gain * s.group.total_ms)
        return advice

    def sample(self, log: SlowQueryLog, group: Group) -> QuerySample:
        """Return the queries of *group*.  Raises ReplayError if they cannot be run again."""
        if group.operation not in REPLAYED:
            raise ReplayError(
                _("${operation} is read by record id, for which there is an index", {"operation": group.operation})
            )
        examples, problem = [], _("there is no example any more")
        for example in log.examples(Choice(key=group.key), SEEN):
            try:
                _query, compiled = compile_example(self.catalog, example)
                page = page_in(example.query)
                examples.append((compiled, statement_of(self.catalog, compiled, group.operation, page)))
            except ReplayError as error:
                problem = error.message
        if not examples:
            raise ReplayError(problem)
        newest = examples[0][0]
        sort = sort_columns(newest) if group.operation == "page" else ()
        filters = steady([filters_of(compiled) for compiled, _ in examples])
        statements = tuple(statement for _, statement in examples[:EXAMPLES])
        return QuerySample(group, statements, filters, sort, union(columns_of(compiled) for compiled, _ in examples))

    def _best(self, trial: Trial, sample: QuerySample) -> Suggestion | str:
        """Return the best suggestion, or the reason why there is none."""
        before = trial.measure(sample.statements)
        suggestions: list[Suggestion] = []
        for candidate in self.candidates.propose(sample.filters, sample.sort):
            outcome = trial.attempt(candidate, sample.statements)
            if outcome is not None and outcome[0].cost <= before.cost * (1 - WORTH):
                after, size = outcome
                size = int(size * max(1.0, self.rows / (trial.rows or self.rows)))
                cost = self._write_cost(candidate, size)
                ddl = candidate.ddl(self.relation)
                suggestions.append(Suggestion(candidate, sample.group, before, after, ddl, cost, size))
        if not suggestions:
            return _("no further index would save 20 % of the time or more")
        # The smallest of the indexes whose cost is within 10 % of the best.
        limit = min(s.after.cost for s in suggestions) * 1.1 + 1
        return min((s for s in suggestions if s.after.cost <= limit), key=lambda s: s.bytes)

    def _write_cost(self, candidate: Candidate, size: int) -> str:
        text = _(
            "about ${bytes} bytes for each written row, besides ${number} existing indexes",
            {"bytes": f"{size / self.rows:.0f}", "number": str(len(self.indexes))},
        )
        indexed = {name for index in self.indexes for name in (*index.keys, *index.included)}
        fresh = [name for name in candidate.columns if name not in indexed]
        if fresh:
            names = {"names": ", ".join(fresh)}
            text = joined([text, _("changes of ${names} alone update no index today", names)])
        return text


def find_candidate(catalog: Catalog, name: str) -> tuple[Candidate, str]:
    """Return the candidate *name*, proposed again from the log, and the shape that it is for.

    Raises AdviceError if the log does not lead to it any more.
    """
    log = log_of(catalog)
    with adviser_of(catalog) as adviser:
        for group in log.groups(SHAPES):
            try:
                sample = adviser.sample(log, group)
            except ReplayError:
                continue
            for candidate in adviser.candidates.propose(sample.filters, sample.sort):
                if candidate.name == name:
                    return candidate, f"{group.shape} ({group.operation})"
    raise AdviceError(_("there is no suggestion ${name} any more; look for indexes again", {"name": f"{name!r:.50}"}))


def union(sets: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """Return the union of *sets*; None if one of them is None."""
    names: frozenset[str] = frozenset()
    for each in sets:
        if each is None:
            return None
        names |= each
    return names


def steady(examples: Sequence[tuple[Filter, ...]]) -> tuple[Filter, ...]:
    """Return the filters of the first of *examples*, with *steady* set to whether every example has the same filter.

    With fewer than EXAMPLES examples, *steady* is False for all.
    """
    same = set(examples[0]).intersection(*examples[1:]) if len(examples) >= EXAMPLES else set()
    return tuple(replace(f, steady=f in same) for f in examples[0])


def text_bytes(catalog: Catalog) -> dict[str, int]:
    """Return column -> maximum length in bytes of the values of the *catalog*'s text columns."""
    sizes = {"path": PATH_BYTES}
    for name in catalog.indexes:
        translator = catalog.translator(name)
        is_key = isinstance(translator, FieldIndexTranslator)
        for column in translator.columns():
            if column.type == "text":
                sizes[column.name] = KEY_BYTES if is_key else PATH_BYTES
    return sizes
