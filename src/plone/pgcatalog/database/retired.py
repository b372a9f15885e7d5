"""Drops the relations that commits have retired, when they are committed and nobody can read them any more."""

from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.schema import drop_retired
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.storage import dsn_of
from typing import Any

import logging
import psycopg


logger = logging.getLogger(__name__)


def drop_after_commit(session: Session) -> None:
    """Have retired relations dropped when *session* has committed; what cannot go then waits for the next time."""
    session.jar.transaction_manager.get().addAfterCommitHook(_committed, (session,))


def _committed(success: bool, session: Session) -> None:
    if not success:
        return
    try:
        _let_go(session)
        with connect(dsn_of(session.jar), "retired relations") as connection:
            drop_retired(connection.cursor())
    except psycopg.Error as error:
        # The commit is done; the relations are in nobody's way.
        logger.warning("retired relations are not dropped now: %s", error)


def _let_go(session: Session) -> None:
    """Take the snapshot anew that ended the commit.

    That one has read in object_state what others have changed, which locks it.  Now there is nothing new to read.
    """
    jar: Any = session.jar
    if not jar.explicit_transactions:
        jar.newTransaction(None, False)
        session.forget_snapshot()
