"""The Zope side of the soak, each part in a process of its own: create the site, serve it, check it at the end.

Started by the soak as ``python -m checks.soak.server`` with one argument, a JSON object; the last printed line is the answer,
as JSON.
"""

from checks.soak.monitor import rss
from collections.abc import Callable
from collections.abc import Iterator
from demo.server import log_to
from demo.server import PACKAGE_ZCML
from demo.server import SITE_ZCML
from pathlib import Path
from typing import Any

import contextlib
import ctypes
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback


logger = logging.getLogger("soak")

AREA = "soak"
FOLDERS = tuple(f"f{number}" for number in range(8))
#: Additional folders, read and written by the probes only.
PROBED = tuple(f"p{number}" for number in range(8))
POOL_TIMEOUT = 5
#: Seconds from one line of ``note_memory`` to the next.
NOTED_EVERY = 60
#: Seconds after which a request's stack is printed: Zope's pauses before RETRIES repetitions are 63 s at most, and a client
#: waits for longer.
LONG = 75.0
#: Names of the fields of glibc's ``mallinfo2``, numbers of bytes except for three.
MALLINFO = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
#: Zope's default is 3. All clients write in the same eight folders, and CMFEditions has one counter for the whole site.
RETRIES = 6
#: Variable of the environment: set if the pooler follows no prepared statements.
UNPREPARED = "SOAK_UNPREPARED"
#: Besides the threads' ZODB connections: slots for replacing a broken one.
SPARE_SLOTS = 2
#: Besides its pool: the storage's own connection, and a short one that applies or drops tables.
STORAGE_CONNECTIONS = 2

# Small caches are full within minutes: growth after that is a leak.
ZOPE_CONF = """\
%import zodb_pgjsonb
%define INSTANCE {instance}
instancehome $INSTANCE
debug-mode off
max-conflict-retries {retries}
<environment>
  CHAMELEON_CACHE {cache}
  zope_i18n_compile_mo_files false
  PGCATALOG_RESULT_CACHE_MB 4
</environment>
<zodb_db main>
  pool-size {threads}
  cache-size 1000
  <pgjsonb>
    dsn {dsn} application_name={name}
    pool-max-size {slots}
    pool-timeout {timeout}
    cache-shared-mb 8
    cache-per-connection-mb 2
    cache-warm-pct 0
    blob-temp-dir $INSTANCE/var/blobs
    {prepare}
  </pgjsonb>
  mount-point /
</zodb_db>
"""


def bound(threads: int) -> int:
    """Return the maximal number of PostgreSQL connections of a Zope process with *threads*."""
    return threads + SPARE_SLOTS + STORAGE_CONNECTIONS


def configure(folder: Path, dsn: str, name: str, threads: int) -> Path:
    """Write the configuration of the Zope process *name*; return the path of zope.conf."""
    instance = folder / name
    for part in ("etc", "var/log", "var/blobs", "../cache"):
        (instance / part).mkdir(parents=True, exist_ok=True)
    (instance / "etc" / "site.zcml").write_text(SITE_ZCML.format(package=PACKAGE_ZCML))
    conf = instance / "etc" / "zope.conf"
    slots = threads + SPARE_SLOTS
    prepare = "prepare-threshold -1" if os.environ.get(UNPREPARED) else ""
    values = {
        "prepare": prepare,
        "threads": threads,
        "slots": slots,
        "dsn": dsn,
        "name": name,
        "timeout": POOL_TIMEOUT,
        "retries": RETRIES,
    }
    conf.write_text(ZOPE_CONF.format(instance=instance, cache=folder / "cache", **values))
    return conf


def start(folder: Path, dsn: str, name: str, threads: int = 1) -> Any:
    """Start Zope in this process; return the application root, opened."""
    conf = configure(folder, dsn, name, threads)
    log_to(folder / name / "var" / "log" / "event.log")
    from Zope2.Startup.run import configure_wsgi

    starter = configure_wsgi(str(conf))
    starter.setupPublisher()
    starter.startZope()
    from zope.event import notify
    from zope.processlifetime import ProcessStarting

    notify(ProcessStarting())
    import Zope2

    return Zope2.app()


# -- make


def make(folder: Path, dsn: str, objects: int, embedder_url: str = "") -> dict[str, Any]:
    """Create the demo's site with *objects* in it, and the area in which the clients write.

    With the URL of an embedder, its pages have vectors, and no versions: no pack would remove those of deleted pages.
    """
    root = start(folder, dsn, "make")
    from demo.run import Session
    from plone.dexterity.utils import createContentInContainer
    from plone.registry.interfaces import IRegistry
    from rich.console import Console
    from zope.component import getUtility

    import transaction

    @contextlib.contextmanager
    def progress(title: str, total: int) -> Iterator[Callable[[], None]]:
        yield lambda: None

    @contextlib.contextmanager
    def timed(title: str) -> Iterator[None]:
        yield

    session = Session(root, Console(stderr=True), progress, timed)
    session.prepare(objects)
    area = createContentInContainer(session.site, "Folder", checkConstraints=False, id=AREA, title="Soak")
    for name in (*FOLDERS, *PROBED):
        createContentInContainer(area, "Folder", checkConstraints=False, id=name, title=name)
    if embedder_url:
        session.site.portal_repository.manage_setTypePolicies({})
        registry = getUtility(IRegistry)
        registry["plone.pgcatalog.embedder_url"] = embedder_url
        registry["plone.pgcatalog.embedder_model"] = "letters"
    transaction.commit()
    paths = [b.getPath() for b in session.site.portal_catalog.unrestrictedSearchResults(portal_type="Document")]
    session.close()
    return {"objects": objects, "pages": paths}


# -- serve


def origin(frames: list[str]) -> str:
    """Return the package that raised an exception, given the file names of its traceback, outermost first."""
    for frame in reversed(frames):
        if frame.endswith("unavailable.py"):
            continue  # every request passes our filter
        for part, owner in (("plone/pgcatalog", "catalog"), ("zodb_pgjsonb", "storage")):
            if part in frame:
                return owner
    return "elsewhere"


def named_errors(application: Any) -> Any:
    """Return a WSGI application that names the exception that left *application*, instead of waitress' own page.

    After LONG seconds it prints the stack of a request that is not answered yet.
    """

    def call(environ: Any, start_response: Any) -> Any:
        thread = threading.get_ident()

        def print_stack() -> None:
            frames = "".join(traceback.format_stack(sys._current_frames()[thread]))
            print(f"{time.ctime()}: {environ['PATH_INFO']} takes {LONG} s\n{frames}", file=sys.stderr, flush=True)

        timer = threading.Timer(LONG, print_stack)
        timer.start()
        try:
            return application(environ, start_response)
        except Exception as error:
            logger.exception("left the publisher: %s %s", environ["REQUEST_METHOD"], environ["PATH_INFO"])
            frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
            header = f"{type(error).__name__} in {origin(frames)}"
            start_response("500 Internal Server Error", [("X-Error", header), ("Content-Type", "text/plain")])
            return [b"Internal Server Error"]
        finally:
            timer.cancel()

    return call


def note_memory(name: str) -> None:
    """Log what the memory of this process is made of, each minute: growth of a long run has a name then.

    In MB: all, as the operating system counts it, glibc's heaps and mappings, what of the heaps is free, and the result
    cache.  In numbers: Python's blocks, the objects of ZODB's caches, entries of the result cache.

    It does not list Python's objects: another thread's ``tuple(…)`` fails while it is listed (SystemError), and requests
    that are held beyond their end take away the skins of later ones when they are freed.
    """
    from plone.pgcatalog.results.cache import result_cache

    import Zope2

    class Malloc(ctypes.Structure):
        _fields_ = [(field, ctypes.c_size_t) for field in MALLINFO]

    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Malloc
    while True:
        heap, cache = mallinfo(), result_cache()
        figures = {
            "rss": rss(os.getpid()) >> 20,
            "heaps": heap.arena >> 20,
            "free": heap.fordblks >> 20,
            "mapped": heap.hblkhd >> 20,
            "results": cache.size >> 20,
            "blocks": sys.getallocatedblocks(),
            "zodb": sum(each["size"] for each in Zope2.DB.cacheDetailSize()),
            "entries": len(cache),
        }
        logger.info("memory of %s: %s", name, json.dumps(figures))
        time.sleep(NOTED_EVERY)


def serve(folder: Path, dsn: str, name: str, threads: int) -> None:
    """Serve the site until the other end of stdin closes; print the port first."""
    start(folder, dsn, name, threads)._p_jar.close()
    threading.Thread(target=note_memory, args=(name,), daemon=True).start()
    from plone.pgcatalog.unavailable import unavailable_filter
    from waitress.server import create_server
    from ZPublisher.httpexceptions import HTTPExceptionHandler
    from ZPublisher.WSGIPublisher import publish_module

    # As in a wsgi.ini, except for the outermost.
    application = named_errors(unavailable_filter(HTTPExceptionHandler(publish_module)))
    server = create_server(application, host="127.0.0.1", port=0, threads=threads)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    threading.Thread(target=lambda: (sys.stdin.read(), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()
    print(json.dumps({"port": server.effective_port}), flush=True)
    server.run()


# -- check


def check(folder: Path, dsn: str, ledger: str) -> dict[str, Any]:
    """Compare the catalog with the content, and both with the *ledger*, the file of acknowledged writes."""
    root = start(folder, dsn, "check")
    from checks.soak import ledger as acknowledged
    from demo import site as sites
    from plone.pgcatalog.indexing.verify import Verifier

    app = sites.published(root)
    try:
        site = sites.find_site(app)
        sites.become(app, "admin")
        verifier = Verifier(site.portal_catalog)
        differences = [str(difference) for difference in verifier.differences()]
        pages = acknowledged.load(Path(ledger))
        found = acknowledged.compare(site, AREA, pages)
        return {"verified": verifier.checked, "differences": differences, **found}
    finally:
        sites.close(app)


TASKS: dict[str, Any] = {"make": make, "serve": serve, "check": check}

if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    answer = TASKS[arguments.pop("task")](Path(arguments.pop("folder")), **arguments)
    if answer is not None:
        print(json.dumps(answer), flush=True)
