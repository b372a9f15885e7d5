"""The advisory locks of PostgreSQL that the package uses.

The first key of a lock is the kind of work, the second the catalog.  Those of long jobs are taken in SQL
(``pgcatalog_lock_job``).  A lock ends with its connection at the
latest.  Locks with one key, such as the storage's, never conflict with locks with two keys.
"""

#: A catalog is being rebuilt; see ``of_catalog``.
REBUILD = 0x70676361
#: The words of a catalog are being counted; see ``of_catalog``.
COUNT_WORDS = 0x70676377
#: The tables of chunks of a catalog are being created; see ``of_catalog``.
CHUNKS = 0x7067636D

#: Blocks other transactions that add lists to ``pgcatalog_sets`` until this one ends; see ``database.sets``.
ADD_SETS = f"SELECT pg_advisory_xact_lock({0x70676373}, 0)"

#: Waits for running commits, and blocks further ones until this transaction ends: zodb-pgjsonb's lock of commits.
HOLD_COMMITS = "SELECT pg_advisory_xact_lock(0)"

#: Releases all locks of a session at once: a busy server notices a closed connection only some time later.
RELEASE = "SELECT pg_advisory_unlock_all()"


def of_catalog(work: int, zoid: int) -> tuple[int, int]:
    """Return both keys of the lock for *work*, a constant of this module, on the catalog with tool oid *zoid*."""
    return work, zoid % 2**31
