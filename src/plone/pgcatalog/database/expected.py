"""The schema that all catalogs of a database share (``base.sql``), and its missing, disabled or invalid parts."""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import asdict
from dataclasses import dataclass
from plone.pgcatalog.database.layout import load_sql
from typing import Any

import re


#: Runs a statement with named values and returns its rows, as tuples or dicts.
Execute = Callable[[str, Mapping[str, Any]], list[Any]]
#: A statement with its named values.
NamedStatement = tuple[str, Mapping[str, Any]]

TABLE, COLUMN, KEY, INDEX, TRIGGER, FUNCTION, SEQUENCE = (
    "table",
    "column",
    "key",
    "index",
    "trigger",
    "function",
    "sequence",
)
#: The index that finds similar words: expected if pg_trgm is installed and words were counted.
TRIGRAMS = "trigrams"
#: The kinds of parts without which the statistics of catalogs cannot be read.
NEEDED_TO_READ = (TABLE, COLUMN)
#: SQL of a constraint -> its contype in pg_constraint.
KEYS = {"PRIMARY KEY": "p", "UNIQUE": "u", "REFERENCES": "f"}

_TABLES = re.findall(r"^CREATE TABLE IF NOT EXISTS (\w+) \(\n(.*?)^\)", load_sql("base"), re.M | re.S)


@dataclass(frozen=True, slots=True)
class SchemaPart:
    """A part of the schema: its *kind*, its *name*, and the table that it is *of*, "" for tables, functions and sequences.

    The name of a key is its contype.  *is_recreated*: whether the start of Zope recreates the part if it is missing.
    """

    kind: str
    name: str
    of: str = ""
    is_recreated: bool = True

    @property
    def shown(self) -> str:
        """The name as people see it."""
        if self.kind == KEY:
            return f"{self.of} {next(words for words, kind in KEYS.items() if kind == self.name)}"
        if self.kind == COLUMN:
            return f"{self.of}.{self.name}"
        return f"{self.name}()" if self.kind == FUNCTION else self.name


def _schema_parts() -> list[SchemaPart]:
    parts = [SchemaPart(TABLE, name) for name, _ in _TABLES]
    parts += [
        SchemaPart(FUNCTION, name) for name in re.findall(r"^CREATE OR REPLACE FUNCTION (\w+)", load_sql("base"), re.M)
    ]
    parts += [
        SchemaPart(SEQUENCE, name)
        for name in re.findall(r"^CREATE SEQUENCE IF NOT EXISTS (\w+)", load_sql("base"), re.M)
    ]
    for of, body in _TABLES:
        body = re.sub(r"--.*", "", body)
        columns = re.findall(r"^    (\w+)\s+(?!KEY|NULLS)\S", body, re.M)
        parts += [SchemaPart(COLUMN, name, of, False) for name in columns]
        parts += [
            SchemaPart(KEY, kind, of, kind == KEYS["REFERENCES"]) for words, kind in KEYS.items() if words in body
        ]
    later = re.findall(r"^ALTER TABLE (\w+) ADD COLUMN IF NOT EXISTS (\w+)", load_sql("base"), re.M)
    parts += [SchemaPart(COLUMN, name, of) for of, name in later]
    indexes = re.findall(r"^CREATE INDEX IF NOT EXISTS (\w+)\s+ON (\w+)", load_sql("base"), re.M)
    parts += [SchemaPart(INDEX, name, of) for name, of in indexes]
    triggers = re.findall(r"^CREATE OR REPLACE TRIGGER (\w+) .* ON (\w+) ", load_sql("base"), re.M)
    parts += [SchemaPart(TRIGGER, name, of) for name, of in triggers]
    return [*parts, SchemaPart(TRIGRAMS, "pgcatalog_words_trigrams", "pgcatalog_words", False)]


SCHEMA_PARTS = tuple(_schema_parts())
TABLES = tuple(part.name for part in SCHEMA_PARTS if part.kind == TABLE)
_FAULTS = load_sql("shared_faults")


def shared_faults(execute: Execute) -> list[dict[str, str]]:
    """Return the faults of SCHEMA_PARTS, each with ``kind``, ``name``, ``state`` and ``line``.

    - ``name``: as people see it
    - ``state``: ``missing``, ``disabled`` or ``invalid``
    - ``line``: the command that repairs the part; "" if the start of Zope does

    A missing table stands for all its parts.  A part that the start of Zope cannot recreate stands for all that it could
    recreate of the same table.
    """
    parts = [asdict(part) for part in SCHEMA_PARTS]
    values = {name: [part[name] for part in parts] for name in ("kind", "name", "of")}
    found = [(SCHEMA_PARTS[number - 1], state) for number, state in map(values_of, execute(_FAULTS, values))]
    broken = {part.of for part, state in found if not part.is_recreated}
    return [
        {"kind": part.kind, "name": part.shown, "state": state, "line": _line(part, state)}
        for part, state in found
        if not part.is_recreated or part.of not in broken
    ]


def values_of(row: Any) -> tuple[Any, ...]:
    """Return the values of *row*, a tuple or a dict."""
    return tuple(row.values() if isinstance(row, dict) else row)


def can_be_read(faults: list[dict[str, str]]) -> bool:
    """Return whether the statistics of catalogs can be read in a database with *faults*."""
    return not any(fault["kind"] in NEEDED_TO_READ for fault in faults)


def _line(part: SchemaPart, state: str) -> str:
    """Return the command that repairs *part* if its state is *state*; "" if the start of Zope repairs it."""
    if state == "invalid":
        return f"REINDEX INDEX {part.name}"
    if part.kind == TRIGRAMS:
        return "pgcatalog vacuum ZOPE_CONF"
    # The rows of the table are useless without it.
    return "" if part.is_recreated else f"DROP TABLE {part.of} CASCADE"
