"""Lets something happen in the middle of a pack of zodb-pgjsonb, at the moments that it logs.

Run by test_pack in a process of its own, which has loaded nothing of ours, it packs by the console script ``zodbpack`` while
somebody saves.  Arguments: the DSN, the package that the configuration imports, whether the storage keeps history.  Prints how
many references lead to nothing.
"""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tests.integration.upstream_check import Process

import logging
import psycopg
import sys


#: What a pack has logged: what can be reached is known, objects are removed, files are removed, all is committed.
MOMENTS = ("reachability trace complete", "unreachable objects", "unreachable blobs", "Pack complete")
#: How many references of all objects lead to nothing.
LOST = (
    "SELECT count(*) FROM object_state o CROSS JOIN unnest(o.refs) AS ref (zoid)"
    " WHERE NOT EXISTS (SELECT FROM object_state t WHERE t.zoid = ref.zoid)"
)
CONF = """\
%import {package}
<pgjsonb>
  dsn {dsn}
  cache-warm-pct 0
  history-preserving {keeps_history}
</pgjsonb>
"""


class Listener(logging.Handler):
    """Calls *action* with each message of a pack."""

    def __init__(self, action: Callable[[str], object]) -> None:
        super().__init__()
        self.action = action

    def createLock(self) -> None:
        """Let packs of several threads come through."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        self.action(record.getMessage())


@contextmanager
def listening(action: Callable[[str], object]) -> Iterator[None]:
    """Let *action* be called with what packs log, in the thread that packs."""
    logger, listener = logging.getLogger("zodb_pgjsonb.packer"), Listener(action)
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)


@contextmanager
def at(moment: str, action: Callable[[], object]) -> Iterator[None]:
    """Let *action* be called whenever a pack comes to *moment*."""
    with listening(lambda message: moment in message and action()):
        yield


@contextmanager
def steps_of_packs() -> Iterator[list[str]]:
    """Yield the list of the MOMENTS that packs come to."""
    steps: list[str] = []
    with listening(lambda message: steps.extend(moment for moment in MOMENTS if moment in message)):
        yield steps


def main(dsn: str, package: str, keeps_history: str) -> None:
    from relstorage.zodbpack import main as zodbpack

    Path("pack.conf").write_text(CONF.format(dsn=dsn, package=package, keeps_history=keeps_history))
    saver = Process(dsn, history_preserving=keeps_history == "True")
    saver.make("page")
    with at(MOMENTS[0], lambda: saver.make("new")):
        zodbpack(["zodbpack", "--days", "-0.001", "pack.conf"])
    saver.close()
    with psycopg.connect(dsn) as connection:
        print("lost", *connection.execute(LOST).fetchone() or ())


if __name__ == "__main__":
    main(*sys.argv[1:])
