"""The stop words of languages, such as *in* and *the*: the lists of PostgreSQL's own text search."""

from functools import cache
from importlib.resources import files


@cache
def listed() -> dict[str, tuple[str, ...]]:
    """Return language code -> stop words; languages without a list are left out."""
    lines = (files(__package__) / "stop_words.txt").read_text("utf-8").splitlines()
    entries = (line.partition(":") for line in lines if not line.startswith("#"))
    return {code: tuple(words.split()) for code, _, words in entries}
