"""What faults leave: ended connections, and a catalog that is sound."""

from plone.pgcatalog.database.direct import session_of
from plone.pgcatalog.indexing.verify import Verifier
from tests.integration.waiting import PATIENCE
from typing import Any

import psycopg


def ids(portal: Any, **query: Any) -> list[str]:
    return sorted(b.getPath().rpartition("/")[2] for b in portal.portal_catalog.unrestrictedSearchResults(**query))


def backend(portal: Any) -> int:
    """Return the process of the server in which the snapshot of *portal* is."""
    return session_of(portal._p_jar._normal_storage.pg_connection)


def terminate(dsn: str, pid: int) -> None:
    """End the session *pid* of the server, and wait until it has let go of its locks."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, %s)", [pid, int(PATIENCE * 1000)])


def assert_sound(portal: Any) -> None:
    assert [str(d) for d in Verifier(portal.portal_catalog).differences()] == []
