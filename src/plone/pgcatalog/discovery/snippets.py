"""Snippets of the hits of a search: the parts of their texts with the most of its words, as safe HTML."""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import unescape
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.discovery.file_pages import FILE_COLUMNS
from plone.pgcatalog.discovery.file_pages import FilePage
from plone.pgcatalog.discovery.file_pages import FilePart
from plone.pgcatalog.discovery.file_pages import FileParts
from plone.pgcatalog.discovery.file_pages import Snippet
from plone.pgcatalog.discovery.file_pages import with_pages
from plone.pgcatalog.discovery.highlight import END_MARK
from plone.pgcatalog.discovery.highlight import GAP
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.discovery.highlight import LENGTH
from plone.pgcatalog.discovery.highlight import MARK
from plone.pgcatalog.fulltext.text_index import body_of
from plone.pgcatalog.fulltext.text_index import PAGE_END
from plone.pgcatalog.fulltext.text_index import SOURCE_LENGTH
from plone.pgcatalog.meaning.text import source_column
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.nearest import CHUNK_COLUMNS
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.nearest import near_in
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import any_value
from typing import Any


def snippets(results: CatalogSearchResults, brains: Iterable[Any], length: int = LENGTH) -> Fetch[dict[int, Snippet]]:
    """Return a fetch of rid -> snippet for *brains* of *results*: about *length* characters of each text, as HTML.

    - The words of the search are in ``<mark>``; there is no other markup.
    - Without such words, the snippet is the beginning of the text.
    - The snippet of a page found by meaning only is from the chunk nearest to the question.
    - The snippet of an object with a file is from the page of the file with the most of the words, if it has any.
    - Brains that the search does not find are left out.

    One statement.
    """
    wanted = [] if results.compiled.is_empty else list(brains)
    if not wanted:
        return Fetch.of({})
    view = results.catalog.search_view()
    rids = [brain.getRID() for brain in wanted]
    rows = any_value(RID, rids)
    where = rows & results.compiled.where.changed(lambda part: part.within(rows) if isinstance(part, Near) else part)
    marks = results.highlighter()
    texts = view.fetch(partial(_texts_statement, results, marks, rids, where), where)
    return texts.then(partial(_snippets, marks, wanted, length))


def _texts_statement(
    results: CatalogSearchResults, marks: Highlighter, rids: Sequence[int], where: Condition, stored: Stored
) -> Statement:
    """Return the statement for (rid, text), in a search by meaning (rid, text, has words, and of a chunk its start and stop,
    its text, whether it is the last one, and the page of a file where it ends).

    The last columns are those of ``FileParts``.
    """
    hits, columns = _hits_statement(results, where, stored)
    return with_pages(hits, columns, rids, marks.patterns(), not marks.has_phrases)


def _hits_statement(results: CatalogSearchResults, where: Condition, stored: Stored) -> tuple[Statement, Sequence[str]]:
    """Return the statement of the hits, and the columns of it that a snippet is made from."""
    source = f"{source_column(results.catalog)} AS source"
    near = near_in(where)
    if near is None:
        return bind.select(f"rid, zoid, {source}", bind.condition(where, stored), stored), ("rid", "source")
    words = results.context.indexes[SOURCE_INDEX].where(results.criteria, results.context) or NOTHING
    chunks = near.question.nearest_of_each(stored.source, bind.condition(near.among, stored))
    relation, values = stored.source
    rid, start, stop = CHUNK_COLUMNS
    joined = f"{relation} LEFT JOIN ({chunks.sql}) AS chunk ON {rid} = rid"
    hits = bind.select(
        f"rid, zoid, {source}, ({words.sql}) IS TRUE AS has_words, {start} AS start, {stop} AS stop",
        bind.condition(where, stored),
        replace(stored, source=(joined, (*values, *chunks.params))),
        params=words.params,
    )
    return hits, ("rid", "source", "has_words", "start", "stop")


def _snippets(marks: Highlighter, brains: Iterable[Any], length: int, rows: Rows) -> dict[int, Snippet]:
    texts = {rid: (source, chunk, FileParts.of(*file)) for rid, source, *chunk, file in map(_with_file, rows)}
    return {
        brain.getRID(): _snippet(marks, brain, *texts[brain.getRID()], length)
        for brain in brains
        if brain.getRID() in texts
    }


def _with_file(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return *row* with the columns of the file in one."""
    return (*row[:-FILE_COLUMNS], row[-FILE_COLUMNS:])


def _snippet(
    marks: Highlighter, brain: Any, source: str | None, chunk: Sequence[Any], file: FileParts, length: int
) -> Snippet:
    has_words, start, _stop, text, is_last, last_page = chunk or (True, *[None] * 5)
    if has_words or start is None or not text:
        found = _file_snippet(marks, brain, source or "", file, length)
        return found or Snippet(marks.snippet(_text(brain, source), length))
    return chunk_snippet(marks, brain, text, start, is_last, file.page(last_page), length)


def _file_snippet(marks: Highlighter, brain: Any, source: str, file: FileParts, length: int) -> Snippet | None:
    """Return the snippet from the page of *file* with the most words of *marks*; None if the head of *source* has more."""
    head, *pages = source.split(PAGE_END)
    parts = [*file.parts, *(FilePart(number, page, False, False) for number, page in enumerate(pages, 1))]
    if len(source) == SOURCE_LENGTH and pages:
        parts[-1] = replace(parts[-1], has_behind=True)
    found = [(marks.excerpt(" ".join(part.text.split()), length), part) for part in parts]
    if not found:
        return None
    best, part = max(found, key=lambda each: each[0].words)
    if not best.words or marks.excerpt(_text(brain, head), length).words > best.words:
        return None
    html = GAP * part.has_before + best.html.removeprefix(GAP * part.has_before)
    return Snippet(html.removesuffix(GAP * part.has_behind) + GAP * part.has_behind, file.page(part.number))


def chunk_snippet(
    marks: Highlighter,
    brain: Any,
    text: str,
    start: int,
    is_last: bool,
    last_page: FilePage | None,
    length: int = LENGTH,
) -> Snippet:
    """Return a snippet, as HTML, of *text*, a chunk that begins at *start* in the stored text of *brain*.

    *is_last*: the chunk is the end of that text; *last_page* is the page of a file where it ends.  Only whole words are
    marked: the page was not found by its words, so a match of ``off*`` in "office" means nothing.
    """
    if is_last:
        text = _without_tags(brain, text)
    if not text:
        return Snippet(marks.snippet(_column(brain, "Description"), length))
    is_first = start <= len(f"{_column(brain, 'getId')} {_column(brain, 'Title')} ")
    part = marks.of_whole_words().excerpt(text.replace(PAGE_END, " "), length)
    html = part.html.removeprefix(GAP).removesuffix(GAP)
    page = last_page and last_page.before(text.count(PAGE_END, part.place))
    return Snippet(GAP * (not is_first) + html + GAP * (not (is_last and len(text) <= length)), page)


def plain_text(html: str) -> str:
    """Return the snippet *html* as plain text, without marks."""
    return unescape(html.replace(MARK, "").replace(END_MARK, ""))


def _text(brain: Any, source: str | None) -> str:
    """Return description and body of the row: *source*, its searchable text, without id, title, tags and the URL of a link.

    The description alone if there is no *source*.
    """
    if source is None:
        return _column(brain, "Description")
    source = " ".join(filter(None, source.split(PAGE_END)))
    return _without_tags(brain, body_of(source, (_column(brain, "getId"), _column(brain, "Title"))))


def _without_tags(brain: Any, text: str) -> str:
    """Return *text*, the end of Plone's searchable text of *brain*, without tags and the URL of a link.

    Tags come after the body of a page.  In a file they come after the description, and are followed by the text of the file.
    """
    if _column(brain, "getRemoteUrl"):
        text = text.rpartition(" ")[0]
    subject = getattr(brain, "Subject", ())
    tags = " ".join(" ".join(tag for tag in subject if isinstance(tag, str)).split()) if subject else ""
    if not tags:
        return text
    description = _column(brain, "Description")
    if text == tags or text.endswith(f" {tags}"):
        return text.removesuffix(tags).rstrip()
    rest = body_of(text, (description,))
    behind = body_of(rest, (tags,))
    return text if behind == rest else " ".join(filter(None, (text[: len(text) - len(rest)].rstrip(), behind)))


def _column(brain: Any, name: str) -> str:
    """Return the metadata *name* of *brain* in one line; "" if it is missing or no string."""
    value = getattr(brain, name, "")
    return " ".join(value.split()) if isinstance(value, str) else ""
