"""The keywords that rows may have, of columns that keep their lists themselves.

Each stands in ``pgcatalog_sets`` as a list of one.  The columns that this is true of are ``collected`` by a catalog.  Its
keywords there need not be looked for in all rows: who knows what there may be asks for each whether any row has it.  Rows
may have lost some; a rebuild removes those.
"""

from collections import Counter
from collections.abc import Collection
from collections.abc import Sequence
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import load_statement
from plone.pgcatalog.database.sets import MANY_LISTS
from plone.pgcatalog.database.sets import save
from plone.pgcatalog.database.sets import Sets
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.values import set_number
from psycopg import Cursor
from psycopg import sql
from typing import Any


#: PostgreSQL looks up a keyword in a GIN in about the time in which it reads so many rows.
ROWS_PER_KEYWORD = 50
#: Nearly all frequent keywords are in the newest rows, which are read at once: the GIN has long lists of such ones.
NEWEST = 100
WITH_SOME_ROW = load_statement("keywords_with_some_row")
#: Those of some columns that have more lists than a process knows.
MANY = "SELECT name FROM pgcatalog_sets WHERE name = ANY(%s::text[]) GROUP BY name HAVING count(*) > %s"
ALL = "SELECT DISTINCT unnest({column}) FROM {relation} LIMIT %s"


def lists_of_one(name: str, keywords: Collection[str]) -> Sets:
    """Return the lists that say that rows may have *keywords* in the column *name*."""
    return {set_number(name, [keyword]): (name, [keyword]) for keyword in keywords}


def collect(cursor: Cursor[Any], names: Collection[str], new: Sets) -> frozenset[str]:
    """Save the *new* lists of one; return the columns of *names* that are still collected: not those with too many."""
    counts = Counter(name for name, _ in new.values())
    few = [name for name in names if counts[name] <= MANY_LISTS]
    save(cursor, {number: (name, values) for number, (name, values) in new.items() if name in few})
    if new:
        cursor.execute(MANY, [few, MANY_LISTS])
        return frozenset(few).difference(name for (name,) in cursor.fetchall())
    return frozenset(few)


def collect_all(cursor: Cursor[Any], relation: str, names: Collection[str]) -> frozenset[str]:
    """Save all keywords in the columns *names* of *relation*, which are read whole; return as ``collect`` does.

    Those that no row has any more are expected to be forgotten next, so that they do not count.
    """
    few = set()
    for name in names:
        query = sql.SQL(ALL).format(column=sql.Identifier(name), relation=sql.Identifier(relation))
        cursor.execute(query, [MANY_LISTS + 1])
        found = [keyword for (keyword,) in cursor.fetchall()]
        if len(found) <= MANY_LISTS:
            few.add(name)
            save(cursor, lists_of_one(name, found))
    return frozenset(few)


def with_some_row(state: CatalogState, column: Column, keywords: Sequence[str]) -> Statement | None:
    """Return the statement for those of *keywords* that a row of *state* has.

    None where reading all rows takes no longer.
    """
    if len(keywords) * ROWS_PER_KEYWORD > state.rows:
        return None
    text = WITH_SOME_ROW.format(column=column.quoted, relation=quote(state.relation), newest=NEWEST)
    # A scan stops at the first row that has a keyword, and PostgreSQL expects one soon; of most of these there are few.
    return Statement(text, (list(keywords),), is_costly=True)
