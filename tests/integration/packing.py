"""Runs an action in the middle of a pack of zodb-pgjsonb, at the moments that it logs.

Run by test_pack in a process of its own, in a folder of its own: packs during a save, and prints the number of dangling
references.  Arguments: the DSN, whether the storage stores history, one of WAYS, and the package imported by zope.conf or
the configuration of the console script ``zodbpack``.
"""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tests.integration import site as sites
from tests.integration.upstream_check import LOST
from tests.integration.upstream_check import Process
from tests.integration.web import MANAGER
from tests.integration.web import Web

import logging
import psycopg
import sys


#: Messages of a pack: reachable objects found, objects removed, files removed, all committed.
MOMENTS = ("reachability trace complete", "unreachable objects", "unreachable blobs", "Pack complete")
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

    def handle(self, record: logging.LogRecord) -> bool:
        """Handle *record* without the lock of a handler, so that packs of several threads can pass."""
        self.action(record.getMessage())
        return True


@contextmanager
def listening(action: Callable[[str], object]) -> Iterator[None]:
    """Call *action* with each log message of a pack, in the thread that packs."""
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
    """Call *action* whenever a pack reaches *moment*."""
    with listening(lambda message: moment in message and action()):
        yield


@contextmanager
def steps_of_packs() -> Iterator[list[str]]:
    """Yield the list of the MOMENTS that packs reach."""
    steps: list[str] = []
    with listening(lambda message: steps.extend(moment for moment in MOMENTS if moment in message)):
        yield steps


def zodbpack(conf: str) -> None:
    """Pack by the console script, in a process that has loaded only the imports of its configuration."""
    from relstorage.zodbpack import main

    Path("pack.conf").write_text(conf)
    main(["zodbpack", "--days", "-0.001", "pack.conf"])


def script(conf: str) -> None:
    """Pack as a script that opens zope.conf; no site is used in this process."""
    import Zope2

    sites.load_zope(Path("zope").resolve(), conf)
    Zope2.DB.pack()


def zmi(conf: str) -> None:
    """Pack by the button of the ZMI."""
    import Zope2

    sites.load_zope(Path("zope").resolve(), conf)
    answer = Web(Zope2.DB).post("/Control_Panel/Database/main/manage_pack", MANAGER, days="0")
    assert answer.status == 302, answer.text


WAYS = {"zodbpack": zodbpack, "script": script, "zmi": zmi}


def main(dsn: str, keeps_history: str, way: str, package: str) -> None:
    saver = Process(dsn, history_preserving=keeps_history == "True")
    saver.make("page")
    with at(MOMENTS[0], lambda: saver.make("new")):
        WAYS[way](CONF.format(dsn=dsn, package=package, keeps_history=keeps_history))
    saver.close()
    with psycopg.connect(dsn) as connection:
        print("lost", *connection.execute(LOST).fetchone() or ())


if __name__ == "__main__":
    main(*sys.argv[1:])
