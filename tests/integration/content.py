"""A small content tree of hostile ids and texts; word counts and search settings."""

from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from DateTime import DateTime
from datetime import datetime
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.sql.files import read_statement
from plone.registry.interfaces import IRegistry
from typing import Any
from zope.component import getUtility

import pytz
import transaction


BERLIN = pytz.timezone("Europe/Berlin")


def create(container: Any, portal_type: str, id: str, **fields: Any) -> Any:
    """Create a content object and return it."""
    subject = fields.pop("subject", None)
    container.invokeFactory(portal_type, id, **fields)
    obj = container[id]
    if subject is not None:
        obj.setSubject(subject)
    obj.reindexObject()
    return obj


def populate(portal: Any) -> None:
    """Create folders, pages and events with odd ids, texts, dates, tags and states."""
    folder = create(portal, "Folder", "my_folder", title="Mein Ordner", subject=("Rot", "grün"))
    create(portal, "Folder", "my-folder", title="Sibling with a dash")
    create(portal, "Folder", "my_folder2", title="Sibling with a prefix", subject=("rot",))
    deep = create(create(folder, "Folder", "a", title="A"), "Folder", "b", title="B")
    create(deep, "Document", "über%_x", title="Über 100 % Straßen", description="café \U0001f600")
    create(folder, "Document", "page", title="Page one", description="A quick brown fox", subject=("Rot", "x y"))
    create(folder, "Document", "page2", title="Page one", subject=())
    create(folder, "News Item", "news", title="Breaking News", description="quick-thinking e-mail me@example.org")
    create(folder, "Document", "chinese", title="数据库目录", description="全文检索")
    expired = create(folder, "Document", "expired", title="Expired page")
    expired.setExpirationDate(DateTime("2001/01/01 UTC"))
    expired.reindexObject()
    future = create(folder, "Document", "future", title="Future page")
    future.setEffectiveDate(DateTime("2099/01/01 UTC"))
    future.reindexObject()
    create(
        folder,
        "Event",
        "weekly",
        title="Weekly meeting",
        start=BERLIN.localize(datetime(2026, 3, 23, 9, 30)),
        end=BERLIN.localize(datetime(2026, 3, 23, 10, 30)),
        recurrence="RRULE:FREQ=WEEKLY;COUNT=5\nEXDATE:20260330T093000",
    )
    create(
        folder,
        "Event",
        "once",
        title="One day",
        start=datetime(2026, 6, 1, 8, 0, tzinfo=pytz.utc),
        end=datetime(2026, 6, 1, 9, 0, tzinfo=pytz.utc),
    )
    portal.portal_workflow.setChainForPortalTypes(
        ("Document", "Folder", "News Item", "Event"), "simple_publication_workflow"
    )
    for path in ("my_folder", "my_folder/page", "my_folder/news", "my_folder/expired", "my_folder/future"):
        portal.portal_workflow.doActionFor(portal.unrestrictedTraverse(path), "publish")


def counted(dsn: str, catalog: Any) -> None:
    """Count the words of *catalog* (all committed) in the database *dsn*, and begin a transaction that sees the counts."""
    with connect_directly(dsn, "test") as connection:
        assert count_words(connection, catalog._core.zoid)
    transaction.begin()


def put_words(connection: Any, catalog: int, column: str, documents: Mapping[str, int]) -> None:
    """Store *documents*, word -> number of documents, as the counted words of *column* of the zoid *catalog*."""
    connection.execute('CREATE TEMP TABLE pgcatalog_counted (word text COLLATE "C", documents integer)')
    with connection.cursor().copy("COPY pg_temp.pgcatalog_counted FROM STDIN") as copy:
        for row in documents.items():
            copy.write_row(row)
    values = {"catalog": catalog, "column": column, "documents": 1000, "average": 100.0, "generation": 1}
    texts = read_statement("fulltext", "words_texts"), {**values, "relation": "pgcatalog_none", "since": "3"}
    [(number,)] = connection.execute(*texts).fetchall()
    connection.execute(read_statement("fulltext", "words_save"), {"number": number})
    connection.execute("DROP TABLE pg_temp.pgcatalog_counted")


def pretend_rows(portal: Any, rows: int) -> None:
    """Make PostgreSQL's planner and this process expect *rows* rows in the catalog of *portal* (committed)."""
    session, zoid = portal.portal_catalog._core.session, portal.portal_catalog._core.zoid
    state = session.read_states()[zoid]
    with connect_directly(portal._p_jar._normal_storage.pg_connection.info.dsn, "test") as connection:
        connection.execute("UPDATE pg_class SET reltuples = %s WHERE relname = %s", (rows, state.relation))
    portal.description = f"About {rows} pages"
    transaction.commit()
    transaction.begin()
    assert session.read_states()[zoid].rows == rows


@contextmanager
def large_catalog(site: Any, limit: int) -> Iterator[None]:
    """Have more than *limit* rows in the catalog of *site*, a Site; afterwards *limit*."""
    with site.inside() as portal:
        pretend_rows(portal, limit + 1)
    yield
    with site.inside() as portal:
        pretend_rows(portal, limit)


def tune(**settings: str | float) -> None:
    """Store *settings* in the registry of the current site."""
    registry = getUtility(IRegistry)
    for name, value in settings.items():
        registry[f"{PREFIX}.{name}"] = value
