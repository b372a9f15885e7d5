"""Passages near to a question: of the pages that a search finds, and of pages that do not match its words."""

from array import array
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from functools import partial
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.discovery.file_pages import FilePage
from plone.pgcatalog.discovery.file_pages import Snippet
from plone.pgcatalog.discovery.snippets import chunk_snippet
from plone.pgcatalog.discovery.snippets import plain_text
from plone.pgcatalog.discovery.snippets import snippets
from plone.pgcatalog.fulltext.text_index import PAGE_END
from plone.pgcatalog.meaning.question import question_of
from plone.pgcatalog.meaning.text import source_column
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.nearest import CHUNK_COLUMNS
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.nearest import near_in
from plone.pgcatalog.query.nearest import SIMILARITY
from plone.pgcatalog.query.statements import versioned_idx_sql
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.results.view import RowsFetch
from plone.pgcatalog.settings import search_by_meaning
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.expression import Statement
from typing import Any


#: Characters of a passage found by words; a passage found by meaning is a chunk, of about 200 words.
LENGTH = 1200
#: Most pages that do not match the words.
MOST_PAGES = 5
#: Place of the rid in the rows of pages that do not match the words.
RID_PLACE = 6


# -- passages of a search


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of the text of the page of *brain*.

    *similarity* to the question is None if it was found by words; *page* is the page of a file that it is from, if any.
    """

    brain: Any
    text: str
    similarity: float | None
    page: FilePage | None = None


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
    found_by_words = [(brain, texts[brain.getRID()]) for brain in brains if brain.getRID() in texts]
    return [Passage(brain, plain_text(text), None, text.page) for brain, text in found_by_words]


def _nearest(results: CatalogSearchResults, near: Near, count: int) -> list[Passage]:
    catalog, threshold = results.catalog, near.question.threshold
    view = catalog.search_view()

    def statement(stored: Stored) -> Statement:
        chunks = near.question.nearest(stored.source, bind.condition(near.among, stored))
        relation, values = stored.source
        sources = f"SELECT rid, zoid, {source_column(catalog)} AS text FROM {relation}"
        return Statement(
            "SELECT near.rid, near.similarity, chunk, file.kind, strpos(file.text, E'\\f') > 0, greatest(1, first_page)"
            f" FROM ({chunks.sql}) AS near JOIN ({sources}) AS source ON source.rid = near.rid"
            " LEFT JOIN LATERAL pgcatalog_file(CASE WHEN strpos(source.text, E'\\f') > 0 THEN zoid END) AS file ON TRUE"
            " CROSS JOIN LATERAL pgcatalog_chunk(source.text, file.text, near.start, near.stop)"
            " WHERE near.similarity >= %s::float8 ORDER BY near.similarity DESC, near.rid DESC, near.start LIMIT %s",
            (*chunks.params, *values, threshold, count),
            near.is_costly,
        )

    rows = view.fetch(statement, near.among).value()
    loader = RowLoader(view, array("q", dict.fromkeys(rid for rid, *_ in rows)), catalog.excluded_keys)
    new_brain = catalog.brain_maker()
    brains = {rid: new_brain(loader, rid) for rid, *_ in rows}
    return [
        Passage(
            brains[rid],
            " ".join((text or "").split(PAGE_END)) or _summary(brains[rid]),
            similarity,
            FilePage(number, kind) if has_pages else None,
        )
        for rid, similarity, text, kind, has_pages, number in rows
    ]


def _summary(brain: Any) -> str:
    """Return title and description, the text of a passage of a page without a text."""
    return ". ".join(
        text for name in ("Title", "Description") if isinstance(text := getattr(brain, name, ""), str) and text
    )


def headings(catalog: Any, found: Iterable[Passage], root: str) -> dict[str, list[str]]:
    """Return path of a page -> titles of its folders below *root* that the user may see, and its own.  One statement."""
    paths = {passage.brain.getPath(): passage.brain.Title for passage in found}
    above = {path: folders_above(path, root) for path in paths}
    wanted = sorted({folder for folders in above.values() for folder in folders})
    titles: Mapping[str, str] = {}
    if wanted:
        brains = catalog.searchResults(path={"query": wanted, "depth": 0}, b_size=len(wanted))
        titles = {brain.getPath(): brain.Title for brain in brains}
    return {
        path: [titles[folder] for folder in above[path] if titles.get(folder)] + [title]
        for path, title in paths.items()
    }


def folders_above(path: str, root: str) -> list[str]:
    """Return the paths of the folders below *root* that contain *path*, the outermost first."""
    names = path.removeprefix(f"{root}/").split("/")[:-1] if path.startswith(f"{root}/") else []
    return [f"{root}/{'/'.join(names[: end + 1])}" for end in range(len(names))]


# -- pages that do not match the words


@dataclass(frozen=True, slots=True)
class AlsoAbout:
    """The page of *brain*; *passage* is the part of its text nearest to the question, as HTML with ``<mark>`` only."""

    brain: Any
    passage: Snippet


def also_about(results: CatalogSearchResults, most: int = MOST_PAGES) -> Fetch[list[AlsoAbout]]:
    """Return a fetch of up to *most* pages near to the question of *results* that do not match its words, the nearest first.

    *results* are of a search by words, whose other criteria apply.  The list is empty if the site does not search by
    meaning, the embedder does not respond in time, or the statement takes too long.  One statement.
    """
    near = _near(results) if search_by_meaning(results.catalog.tool) else None
    if near is None:
        return Fetch.of([])
    view = results.catalog.search_view()
    words = results.context.indexes[SOURCE_INDEX].where(results.criteria, results.context) or NOTHING

    def statement(stored: Stored) -> Statement:
        return _statement(results, near, bind.condition(words, stored), stored, most, view.stamp() is not None)

    return Fetch(partial(_pages, results, view.fetch(statement, near.among, words)))


def _near(results: CatalogSearchResults) -> Near | None:
    """Return the condition of rows near to the question of *results*; None without a question, or for a hybrid search."""
    context, criteria = results.context, results.criteria
    if SOURCE_INDEX not in criteria or SOURCE_INDEX not in context.indexes or near_in(results.condition) is not None:
        return None
    question = question_of(results.catalog, context, criteria)
    if question is None:
        return None
    return near_in(compile_query(criteria, replace(context, question=question), []).where)


def _statement(
    results: CatalogSearchResults, near: Near, words: Any, stored: Stored, most: int, with_metadata: bool
) -> Statement:
    """Return the statement for (start, passage, is_last, kind, has_pages, last_page, rid) of each page.

    *kind*, *has_pages* and *last_page* (where the passage ends) are of its file.  *with_metadata*: (path, score, metadata), too.
    """
    relation, values = stored.source
    chunks = near.question.near_chunks(stored.source, bind.condition(near.among, stored))
    rid, start, stop = CHUNK_COLUMNS
    source = source_column(results.catalog)
    columns = f"{start}, chunk, is_last, file.kind, strpos(file.text, E'\\f') > 0, last_page, rid"
    params: tuple[Any, ...] = ()
    if with_metadata:
        text, params = versioned_idx_sql(relation, results.catalog.excluded_keys)
        columns = f"{columns}, path, NULL::float8, {text}"
    return Statement(
        f"SELECT {columns} FROM {relation} JOIN ({chunks.sql}) AS near ON {rid} = rid"
        f" LEFT JOIN LATERAL pgcatalog_file(CASE WHEN strpos({source}, E'\\f') > 0 THEN zoid END) AS file ON TRUE"
        f" CROSS JOIN LATERAL pgcatalog_chunk({source}, file.text, {start}, {stop})"
        f" WHERE ({words.sql}) IS NOT TRUE ORDER BY {SIMILARITY} DESC, rid DESC LIMIT {most:d}",
        (*params, *values, *chunks.params, *words.params),
        is_costly=True,
    )


def _pages(results: CatalogSearchResults, near: RowsFetch) -> list[AlsoAbout]:
    try:
        rows = near.value()
    except SearchTimeout:
        return []
    catalog = results.catalog
    loader = RowLoader(catalog.search_view(), array("q", [row[RID_PLACE] for row in rows]), catalog.excluded_keys)
    if rows and len(rows[0]) > RID_PLACE + 1:
        loader.add_rows([row[RID_PLACE:] for row in rows], share=False)
    new_brain, marks = catalog.brain_maker(), results.highlighter()
    brains = [new_brain(loader, row[RID_PLACE]) for row in rows]
    return [
        AlsoAbout(
            brain, chunk_snippet(marks, brain, text or "", start, is_last, FilePage(last, kind) if has_pages else None)
        )
        for brain, (start, text, is_last, kind, has_pages, last, *_) in zip(brains, rows, strict=True)
    ]
