"""The SQL of this room, a statement per file."""

from functools import cache
from importlib.resources import files


@cache
def log_sql(name: str) -> str:
    """Return the text of ``observe/sql/<name>.sql``."""
    return (files(__package__) / f"{name}.sql").read_text("utf-8")
