"""The process that runs the tests of one suite: ``python -m checks.plone_suites.worker JOB.json``.

Exit status 0: all tests were run.  EXIT_RESUME: a failure could affect the next test, start another worker for the rest.
"""

from checks.plone_suites.collecting import collect
from checks.plone_suites.driven import Drive
from checks.plone_suites.job import EXIT_RESUME
from checks.plone_suites.job import Job
from checks.plone_suites.job import Progress
from checks.plone_suites.object_cache import ObjectCache
from checks.plone_suites.plone_layers import patch_layers
from checks.plone_suites.running import LayerRunner
from checks.plone_suites.under_pytest import run_pytest
from checks.plone_suites.under_pytest import unpacked
from pathlib import Path
from plone.pgcatalog.testing.stack import Databases
from plone.pgcatalog.testing.stack import StorageStack

import os
import sys
import warnings


def run(job: Job) -> int:
    """Run the remaining tests of *job*; return the exit status."""
    warnings.simplefilter("ignore")
    progress = Progress(Path(job.progress))
    databases = Databases(job.dsn, job.prefix)
    stack = StorageStack(databases, ObjectCache())
    if job.drive:
        Drive(stack).patch()
    patch_layers(stack, job.profile, report=lambda name: progress.append(catalog=name))
    try:
        if job.sdist:
            complete = run_pytest(job, unpacked(job.sdist), progress)
        else:
            complete = run_layers(job, progress)
    finally:
        databases.drop_all()
    return 0 if complete else EXIT_RESUME


def run_layers(job: Job, progress: Progress) -> bool:
    """Run the tests of modules; return False if a new process must run the rest."""
    groups = collect(job, report=lambda name, err: progress.append(import_error=name, err=err))
    progress.append(collected=sum(len(group.tests) for group in groups))
    return LayerRunner(progress, job.test_timeout).run(groups, set(progress.finished()))


if __name__ == "__main__":
    status = run(Job.read(Path(sys.argv[1])))
    sys.stdout.flush()
    os._exit(status)  # threads of a test's server must not prevent the exit
