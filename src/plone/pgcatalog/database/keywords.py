"""The keywords that rows may have, for columns that store their keywords themselves (columns that are not interned).

Each such keyword is a list with one element in ``pgcatalog_sets``.  A column is ``collected`` in a catalog if all its
keywords are there.  Rows may have lost some of these keywords; a rebuild removes them.
"""

from collections import Counter
from collections.abc import Collection
from plone.pgcatalog.database.sets import MANY_LISTS
from plone.pgcatalog.database.sets import save
from plone.pgcatalog.database.sets import Sets
from plone.pgcatalog.sql.values import set_number
from psycopg import Cursor
from psycopg import sql
from typing import Any


#: The columns among some that have more lists than a process caches.
MANY = "SELECT name FROM pgcatalog_sets WHERE name = ANY(%s::text[]) GROUP BY name HAVING count(*) > %s"
ALL = "SELECT DISTINCT unnest({column}) FROM {relation} LIMIT %s"


def lists_of_one(name: str, keywords: Collection[str]) -> Sets:
    """Return a list with one element for each of *keywords* in the column *name*, by number."""
    return {set_number(name, [keyword]): (name, [keyword]) for keyword in keywords}


def collect(cursor: Cursor[Any], names: Collection[str], new: Sets) -> frozenset[str]:
    """Save *new*, lists with one element; return the columns of *names* that are still collected, without too many lists."""
    counts = Counter(name for name, _ in new.values())
    few = [name for name in names if counts[name] <= MANY_LISTS]
    save(cursor, {number: (name, values) for number, (name, values) in new.items() if name in few})
    if new:
        cursor.execute(MANY, [few, MANY_LISTS])
        return frozenset(few).difference(name for (name,) in cursor.fetchall())
    return frozenset(few)


def collect_all(cursor: Cursor[Any], relation: str, names: Collection[str]) -> frozenset[str]:
    """Save all keywords in the columns *names* of *relation*, which is read whole; return the collected columns.

    Lists that no row has any more do not count: the caller removes them next.
    """
    few = set()
    for name in names:
        statement = sql.SQL(ALL).format(column=sql.Identifier(name), relation=sql.Identifier(relation))
        cursor.execute(statement, [MANY_LISTS + 1])
        found = [keyword for (keyword,) in cursor.fetchall()]
        if len(found) <= MANY_LISTS:
            few.add(name)
            save(cursor, lists_of_one(name, found))
    return frozenset(few)
