"""The interface of kinds of jobs."""

from collections.abc import Iterable
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.table import Job
from typing import Any
from zope.interface import Attribute
from zope.interface import Interface


class IJobKind(Interface):
    """A kind of job: a utility whose name is the name of the kind in the table."""

    is_ready = Attribute("False if this process lacks a requirement of the kind; its jobs wait for another process")
    is_long = Attribute("True if a job takes minutes: it has another worker, and may report its progress")
    is_one_statement = Attribute(
        "True if a long job is one statement on the session of its worker, which the server can cancel"
    )

    def work(database: Any, job: Job, progress: Progress) -> None:
        """Do *job* with *database*, a ZODB.DB, and commit.

        - A job about an object that is gone counts as done.
        - A long job reports to *progress*.  If it adds lines about its result there, they are shown until the next job of
          the kind.
        - JobFailed is a failure that users see.
        - Any other exception is a failure after which a short job is tried again; a long one only after errors of the
          database.
        """

    def needed(jobs: NeededJobs) -> Iterable[int]:  # type: ignore[empty-body]
        """Return the subjects in the catalog of *jobs* that need a job of this kind and have none: oids, most often.

        A worker calls this of short kinds when it starts, and of long ones each time it has nothing to do.
        """


class ShortKind:
    """A kind of short jobs that commits put, and that each process can do."""

    is_long = False
    is_one_statement = False

    @property
    def is_ready(self) -> bool:
        return True

    def needed(self, jobs: NeededJobs) -> list[int]:
        """See IJobKind."""
        return []


class LongKind(ShortKind):
    """A kind of long jobs that people or other jobs put, and that each process can do."""

    is_long = True


class JobFailed(Exception):
    """A job has failed for a reason that users should see; *for_good* if another attempt would fail, too.

    With a *pause* the job itself is not the cause: it is tried again after this number of seconds, any number of times.
    """

    def __init__(self, reason: str, for_good: bool = True, pause: float | None = None) -> None:
        super().__init__(reason)
        self.for_good = for_good
        self.pause = pause


class NothingFound(JobFailed):
    """A job has worked, and has found nothing; the message is the likely reason."""
