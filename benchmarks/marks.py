"""Inserts generated text into hand-written pages, between two marks."""

from pathlib import Path


def put_between(page: Path, name: str, text: str) -> None:
    """Replace the text between ``<!-- name -->`` and ``<!-- end of name -->`` in *page*.  Raises ValueError without them."""
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, begin, rest = page.read_text("utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"{page} has no {first} … {last}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", "utf-8")
