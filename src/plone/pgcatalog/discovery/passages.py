"""Passages: the chunks of texts that are nearest to a question, among the pages that the user may see."""

from array import array
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from plone.pgcatalog.discovery.highlight import plain_text
from plone.pgcatalog.discovery.highlight import snippets
from plone.pgcatalog.discovery.highlight import source_column
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.nearest import near_in
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.sql.expression import Statement
from typing import Any


#: Characters of a passage found by words; a passage found by meaning is a chunk, of about 200 words.
LENGTH = 1200


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of the text of the page of *brain*; *similarity* to the question, None if it was found by words."""

    brain: Any
    text: str
    similarity: float | None


def passages(results: CatalogSearchResults, count: int) -> list[Passage]:
    """Return up to *count* passages for the search of *results*, the best first; several may be of one page.

    If the search is by words, or no chunk is similar enough, they are snippets of the first results.
    """
    near = near_in(results.condition)
    found = [] if near is None else _nearest(results, near, count)
    if found:
        return found
    brains = results[:count]
    texts = snippets(results, brains, LENGTH).value()
    return [Passage(brain, plain_text(texts[brain.getRID()]), None) for brain in brains if brain.getRID() in texts]


def _nearest(results: CatalogSearchResults, near: Near, count: int) -> list[Passage]:
    catalog, threshold = results.catalog, near.question.threshold
    view = catalog.search_view()

    def statement(stored: Stored) -> Statement:
        chunks = near.question.nearest(stored.source, bind.condition(near.among, stored))
        relation, values = stored.source
        sources = f"SELECT rid, {source_column(catalog)} AS text FROM {relation}"
        return Statement(
            "SELECT near.rid, near.similarity, substr(source.text, near.start + 1, near.stop - near.start)"
            f" FROM ({chunks.sql}) AS near JOIN ({sources}) AS source ON source.rid = near.rid"
            " WHERE near.similarity >= %s::float8 ORDER BY near.similarity DESC, near.rid DESC, near.start LIMIT %s",
            (*chunks.params, *values, threshold, count),
            near.is_costly,
        )

    rows = view.fetch(statement, near.among).value()
    loader = RowLoader(view, array("q", dict.fromkeys(rid for rid, *_ in rows)), catalog.excluded_keys)
    new_brain = catalog.brain_maker()
    brains = {rid: new_brain(loader, rid) for rid, *_ in rows}
    return [Passage(brains[rid], text or _summary(brains[rid]), similarity) for rid, similarity, text in rows]


def _summary(brain: Any) -> str:
    """Return title and description, the text of a passage of a page without a text."""
    return ". ".join(
        text for name in ("Title", "Description") if isinstance(text := getattr(brain, name, ""), str) and text
    )


def headings(catalog: Any, found: Iterable[Passage], root: str) -> dict[str, list[str]]:
    """Return path of a page -> titles of its folders below *root* that the user may see, and its own.  One statement."""
    paths = {passage.brain.getPath(): passage.brain.Title for passage in found}
    above = {path: _folders(path, root) for path in paths}
    wanted = sorted({folder for folders in above.values() for folder in folders})
    titles: Mapping[str, str] = {}
    if wanted:
        brains = catalog.searchResults(path={"query": wanted, "depth": 0}, b_size=len(wanted))
        titles = {brain.getPath(): brain.Title for brain in brains}
    return {
        path: [titles[folder] for folder in above[path] if titles.get(folder)] + [title]
        for path, title in paths.items()
    }


def _folders(path: str, root: str) -> list[str]:
    """Return the paths of the folders of *path* below *root*, the outermost first."""
    names = path.removeprefix(f"{root}/").split("/")[:-1] if path.startswith(f"{root}/") else []
    return [f"{root}/{'/'.join(names[: end + 1])}" for end in range(len(names))]
