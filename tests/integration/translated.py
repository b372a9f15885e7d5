"""Indexes as SQL: a table with the columns and SQL indexes of a translator, beside the real index."""

from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.sql.expression import Fragment
from typing import Any

import psycopg


class Table:
    """The rows that *translator* creates from objects, in a table like a catalog's."""

    def __init__(self, connection: psycopg.Connection[Any], translator: IndexTranslator) -> None:
        self.connection, self.translator = connection, translator
        columns = translator.columns()
        self.execute(f"CREATE TABLE things (rid integer PRIMARY KEY, {', '.join(column.ddl for column in columns)})")
        for index in translator.sql_indexes():
            self.execute(f'CREATE INDEX "things_{index.name}" ON things {index.definition}')
        self._insert = f"INSERT INTO things VALUES (%s, {', '.join(f'%s::{column.type}' for column in columns)})"

    def execute(self, sql: str, params: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a statement, if it has any."""
        cursor = self.connection.execute(sql, params, prepare=False)
        return cursor.fetchall() if cursor.description else []

    def add(self, rid: int, content: Any) -> list[str]:
        """Insert the indexed values of *content*; return the reports about it."""
        reports: list[str] = []
        values = self.translator.extract(content, reports.append)
        self.execute(self._insert, (rid, *(values or (None,) * len(self.translator.columns()))))
        return reports

    def rids(self, condition: Condition, order: Fragment | None = None) -> list[int]:
        by, params = ("rid", ()) if order is None else (f"{order.sql} DESC", order.params)
        sql = f"SELECT rid FROM things WHERE {condition.sql} ORDER BY {by}"
        return [rid for (rid,) in self.execute(sql, condition.params + params)]

    def plan(self, condition: Condition) -> str:
        sql = f"EXPLAIN SELECT rid FROM things WHERE {condition.sql}"
        return "\n".join(line for (line,) in self.execute(sql, condition.params))


class Pair(Table):
    """A real *index* called *name*, and its translator over a table of the same objects, each created from a text."""

    def __init__(
        self, connection: psycopg.Connection[Any], name: str, index: Any, translator: IndexTranslator, content: Any
    ) -> None:
        super().__init__(connection, translator)
        self.name, self.index, self.content = name, index, content
        self.texts: list[str] = []

    def add_both(self, *texts: str) -> None:
        for text in texts:
            assert self.add_text(text) == []
            self.index.index_object(len(self.texts), self.content(text))

    def add_text(self, text: str) -> list[str]:
        """Add a text to the table only, as the real index may fail to index it; return the reports about it."""
        self.texts.append(text)
        return self.add(len(self.texts), self.content(text))

    def expected(self, query: Any) -> set[str]:
        rids, _ = self.index._apply_index({self.name: query})
        return {self.texts[rid - 1] for rid in rids or ()}

    def found(self, query: Any) -> set[str]:
        condition = self.translator.where({self.name: query})
        assert condition is not None
        return {self.texts[rid - 1] for rid in self.rids(condition, self.translator.score({self.name: query}))}

    def check(self, query: Any) -> set[str]:
        """Return the rids found by both; fail if they differ."""
        found = self.found(query)
        assert found == self.expected(query), query
        return found

    def check_error(self, query: Any, *errors: type[Exception]) -> None:
        """Fail unless both raise one of *errors*."""
        for ask in (self.expected, self.found):
            try:
                answer = ask(query)
            except errors:
                continue
            raise AssertionError(f"{ask.__name__} answers {query!r} by {answer!r}")
