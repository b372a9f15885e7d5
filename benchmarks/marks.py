"""Inserts generated text into hand-written pages, between two marks."""

from pathlib import Path


def around(page: Path, name: str) -> tuple[str, str]:
    """Return the text up to ``<!-- name -->``, and from ``<!-- end of name -->`` on.  Raises ValueError without them."""
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, begin, rest = page.read_text("utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"{page} has no {first} … {last}")
    return before + begin, end + after


def put_between(page: Path, name: str, text: str) -> None:
    """Replace the text between ``<!-- name -->`` and ``<!-- end of name -->`` in *page*.  Raises ValueError without them."""
    before, after = around(page, name)
    page.write_text(f"{before}\n\n{text}\n\n{after}", "utf-8")
