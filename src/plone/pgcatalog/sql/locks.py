"""The advisory locks of PostgreSQL that the package takes.

Each kind of work has a number of its own, the first key of its locks; the second says whose work it is.  A lock is held by a
connection, and goes with it.  Locks with one key, as the storage's, are never equal to those with two.
"""

#: A catalog is being rebuilt; see ``of_catalog``.
REBUILD = 0x70676361
#: The words of a catalog are being counted; see ``of_catalog``.
COUNT_WORDS = 0x70676377
#: The tables of chunks of a catalog are being made; see ``of_catalog``.
CHUNKS = 0x7067636D
#: An advised index is being built or dropped; the second key is ``hashtext`` of its name.
ADVISED_INDEX = 0x70676369
#: Work that was begun in the ZMI; the second key is ``hashtext`` of the catalog's oid, a blank and the name of the work.
JOB = 0x7067636A

#: Lets nobody else add lists to ``pgcatalog_sets`` until the end of the transaction; see ``database.sets``.
ADD_SETS = f"SELECT pg_advisory_xact_lock({0x70676373}, 0)"

#: Waits until no transaction commits, and lets none commit until the end of one's own: zodb-pgjsonb's lock of commits.
HOLD_COMMITS = "SELECT pg_advisory_xact_lock(0)"

#: Lets go of all that a session holds, at once: a busy server notices some time later that a connection is closed.
RELEASE = "SELECT pg_advisory_unlock_all()"


def of_catalog(work: int, zoid: int) -> tuple[int, int]:
    """Return both keys of the lock for *work*, one of the above, on the catalog whose tool has the oid *zoid*."""
    return work, zoid % 2**31
