"""The stop words of languages, such as *in* and *the*: lists that PostgreSQL has for its own text search."""

from functools import cache
from importlib.resources import files


@cache
def listed() -> dict[str, tuple[str, ...]]:
    """Return language code -> words; languages without a list are missing."""
    lines = (files(__package__) / "stop_words.txt").read_text("utf-8").splitlines()
    entries = (line.partition(":") for line in lines if not line.startswith("#"))
    return {code: tuple(words.split()) for code, _, words in entries}
