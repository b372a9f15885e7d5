"""SQL in files: the folder ``sql`` of a room has a file ``<name>.sql`` for each long statement of the room."""

from functools import cache
from importlib.resources import files


@cache
def read_sql(room: str, name: str) -> str:
    """Return the text of ``<room>/sql/<name>.sql``."""
    return (files("plone.pgcatalog") / room / "sql" / f"{name}.sql").read_text("utf-8")


@cache
def read_statement(room: str, name: str) -> str:
    """Return the statement of ``<room>/sql/<name>.sql`` in one line, without its comment lines, to shorten messages.

    A comment behind SQL in the same line is not allowed.  ``{name}`` is a part that the caller formats, ``%s`` or ``%(name)s``
    a value.
    """
    lines = read_sql(room, name).splitlines()
    return " ".join(" ".join(line for line in lines if not line.lstrip().startswith("--")).split())
