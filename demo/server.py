"""PostgreSQL, Zope and the HTTP server of the demo, without buildout or recipe."""

from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import contextlib
import logging
import os
import psycopg
import socket
import threading
import time


ZOPE_CONF = """\
# Written by demo at every start.
%import zodb_pgjsonb
%define INSTANCE {instance}
instancehome $INSTANCE
debug-mode off
<environment>
  CHAMELEON_CACHE $INSTANCE/var/cache
  zope_i18n_compile_mo_files false
</environment>
<zodb_db main>
  # One pool slot is kept for the life of a ZODB connection: more slots than
  # connections, or the last thread waits for ever.
  pool-size {connections}
  cache-size 30000
  <pgjsonb>
    dsn {dsn}
    pool-max-size {slots}
    cache-warm-pct 0
    blob-temp-dir $INSTANCE/var/blobs
  </pgjsonb>
  mount-point /
</zodb_db>
"""

SITE_ZCML = """\
<configure xmlns="http://namespaces.zope.org/zope"
           xmlns:five="http://namespaces.zope.org/five">
  <include package="Zope2.App" />
  <five:loadProducts file="meta.zcml" />
  <five:loadProducts />
  {package}
  <five:loadProductsOverrides />
</configure>
"""
#: If the package is installed, plone.autoinclude loads it, too; loading it twice does no harm.
PACKAGE_ZCML = '<include package="plone.pgcatalog" />'

#: Threads of the HTTP server.
THREADS = 4
CONNECTIONS = THREADS + 4


class DemoError(Exception):
    """A failure that ends the demo; the message has the remedy."""


def free_port(host: str, wanted: int) -> int:
    """Return the wanted port, or another one if it is in use."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            # Like waitress: a port in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((host, port))
                return int(probe.getsockname()[1])
    raise DemoError(f"The host {host} has no free TCP port.")


def wait_for(dsn: str, seconds: float = 30) -> str:
    """Wait until the database answers; return the version of the server."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with psycopg.connect(dsn, connect_timeout=5) as connection:
                return str(connection.info.parameter_status("server_version"))
        except psycopg.OperationalError:
            # A container's server needs time to start.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


class ErrorCounter(logging.Handler):
    """Stores logged errors, so that the check reports them."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(f"{record.name}: {record.getMessage()}")


def log_to(path: Path) -> ErrorCounter:
    """Send the log to a file, so that the screen shows only the tour."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s [%(name)s] %(message)s"))
    errors = ErrorCounter()
    logging.basicConfig(level=logging.INFO, handlers=[handler, errors], force=True)
    logging.captureWarnings(True)
    return errors


class Instance:
    """A Zope instance on a database: its files, start and end."""

    #: Its zope.conf, for ``str.format``.
    conf = ZOPE_CONF

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder.resolve()
        self.dsn = dsn
        self.errors = ErrorCounter()

    @property
    def log(self) -> Path:
        return self.folder / "var" / "log" / "event.log"

    def write(self) -> Path:
        """Write the configuration; return the path of zope.conf."""
        for name in ("etc", "var/log", "var/cache", "var/blobs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        site_zcml = self.folder / "etc" / "site.zcml"
        site_zcml.write_text(SITE_ZCML.format(package=PACKAGE_ZCML), encoding="utf-8")
        zope_conf = self.folder / "etc" / "zope.conf"
        # It may contain a password.
        with open(os.open(zope_conf, os.O_WRONLY | os.O_CREAT, 0o600), "w") as conf:
            conf.truncate()
            conf.write(
                self.conf.format(
                    instance=self.folder,
                    dsn=self.dsn.replace("$", "$$"),
                    connections=CONNECTIONS,
                    slots=CONNECTIONS + 4,
                )
            )
        return zope_conf

    def start(self) -> Any:
        """Start Zope in this process; return the application root, opened."""
        zope_conf = self.write()
        self.errors = log_to(self.log)
        # Imported here: Zope must not be imported before its configuration
        # is known (and the help of the command line needs no Zope).
        from Zope2.Startup.run import configure_wsgi

        starter = configure_wsgi(str(zope_conf))
        # Not starter.prepare(): it sets the locale of the environment, which a
        # slim container often names without having it installed.
        starter.setupPublisher()
        starter.startZope()
        from zope.event import notify
        from zope.processlifetime import ProcessStarting

        notify(ProcessStarting())
        import Zope2

        return Zope2.app()

    def close(self) -> None:
        """Close the database and all its connections to PostgreSQL."""
        import Zope2

        # Zope2.DB is None until Zope is started.
        if getattr(Zope2, "DB", None) is not None:
            from plone.pgcatalog.queue.worker import stop_threads

            # Otherwise a worker and the database would close the same connection.
            stop_threads()
            Zope2.DB.close()


def make_http_server(host: str, port: int, filters: Callable[[Any], Any] = lambda application: application) -> Any:
    """Return a waitress server for the started Zope, behind WSGI *filters*; it already listens."""
    from waitress.server import create_server
    from ZPublisher.httpexceptions import HTTPExceptionHandler
    from ZPublisher.WSGIPublisher import publish_module

    application = filters(HTTPExceptionHandler(publish_module))
    return create_server(application, host=host, port=port, threads=THREADS)


@contextlib.contextmanager
def http_server(host: str = "127.0.0.1") -> Iterator[str]:
    """Serve in a background thread on a free port; yield the URL of the root."""
    server = make_http_server(host, free_port(host, 0))
    ended = threading.Event()

    def run() -> None:
        # Not server.run(): only a signal would end that, and this thread never gets one.
        while not ended.is_set():
            server.asyncore.loop(timeout=0.2, map=server._map, count=1)

    thread = threading.Thread(target=run, name="demo-http", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.effective_port}"
    finally:
        ended.set()
        thread.join()
        server.task_dispatcher.shutdown()
        server.asyncore.close_all(server._map)
