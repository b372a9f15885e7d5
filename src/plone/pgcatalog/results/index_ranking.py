"""Pages that an index of the extension pg_textsearch ranks."""

from collections.abc import Callable
from dataclasses import replace
from plone.pgcatalog.fulltext import pg_textsearch_index
from plone.pgcatalog.fulltext.pg_textsearch import IndexedScore
from plone.pgcatalog.query.compiler import CompiledQuery
from typing import Any


def ranked_by_index(view: Any, query: CompiledQuery, ask: Callable[[CompiledQuery], Any]) -> Any:
    """Return what *ask* brings of *query* in *view*, a CatalogView; ranked by the index, if that is wanted and can be."""
    score = query.score
    if not isinstance(score, IndexedScore):
        return ask(query)
    plain = replace(query, score=score.plain)
    # Pending rows are in no index.
    stamp = view.stamp()
    relation = None if stamp is None else stamp.relation
    database = view.session.generations.number
    index = relation and pg_textsearch_index.usable_index(view.session.execute, database, relation, score.column.name)
    if not relation or not index:
        return ask(plain)
    # Behind a statement_timeout of the transaction, pg_textsearch 0.6 refuses to rank a table that a rebuild has made.
    limit, view.limit = view.limit, None
    try:
        return ask(replace(query, score=score.by(index)))
    except pg_textsearch_index.REFUSED as error:
        refused = error
    finally:
        view.limit = limit
    rows = ask(plain)  # raises again what has nothing to do with the index
    pg_textsearch_index.refuse(database, relation, refused)
    return rows
