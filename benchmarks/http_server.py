"""A Zope process of the benchmark ``pages``: the site of a backend over HTTP.

``python -m benchmarks.http_server <backend> <dsn> <folder> <threads>`` prints its port when it listens, and ends when the
other end of stdin closes.
"""

from benchmarks.backends import CACHE_MB
from benchmarks.backends import OURS
from benchmarks.backends import REFERENCE
from pathlib import Path
from typing import Any

import os
import signal
import sys
import threading


#: Objects in the ZODB cache of a connection: Plone's default.
CACHE_SIZE = 30_000
STORAGES = {
    REFERENCE: """\
  <relstorage>
    keep-history false
    cache-local-mb {cache}
    blob-dir {folder}/blobs
    shared-blob-dir false
    <postgresql>
      driver psycopg2
      dsn {dsn}
    </postgresql>
  </relstorage>""",
    OURS: """\
  <pgjsonb>
    dsn {dsn}
    pool-max-size {slots}
    cache-shared-mb {cache}
    cache-warm-pct 0
    blob-temp-dir {folder}/blobs
  </pgjsonb>""",
}
IMPORTS = {REFERENCE: "relstorage", OURS: "zodb_pgjsonb"}
ZOPE_CONF = """\
%import {package}
instancehome {folder}
debug-mode off
<environment>
  CHAMELEON_CACHE {folder}/cache
  zope_i18n_compile_mo_files false
</environment>
<zodb_db main>
  pool-size {connections}
  cache-size {objects}
{storage}
  mount-point /
</zodb_db>
"""
# Plone loads installed add-ons by itself: a site that does not use ours must not load it.
SITE_ZCML = """\
<configure
    xmlns="http://namespaces.zope.org/zope"
    xmlns:five="http://namespaces.zope.org/five"
    xmlns:meta="http://namespaces.zope.org/meta"
    >
  <meta:provides feature="disable-autoinclude" />
  <include package="Zope2.App" />
  <five:loadProducts file="meta.zcml" />
  <five:loadProducts />
  <include package="plone.classicui" />
  <include package="plone.app.upgrade" />
  {add_on}
  <five:loadProductsOverrides />
</configure>
"""
ADD_ONS = {REFERENCE: "", OURS: '<include package="plone.pgcatalog" />'}
#: Connections in addition to those of the threads.
SPARE = 4


def configure(folder: Path, backend: str, dsn: str, threads: int) -> Path:
    """Write the configuration of a Zope process; return the path of zope.conf."""
    for name in ("etc", "cache", "blobs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "etc" / "site.zcml").write_text(SITE_ZCML.format(add_on=ADD_ONS[backend]))
    connections = threads + SPARE
    storage = STORAGES[backend].format(dsn=dsn, cache=CACHE_MB, folder=folder, slots=connections + SPARE)
    conf = folder / "etc" / "zope.conf"
    conf.write_text(
        ZOPE_CONF.format(
            package=IMPORTS[backend], folder=folder, connections=connections, objects=CACHE_SIZE, storage=storage
        )
    )
    return conf


def start(conf: Path) -> Any:
    """Start Zope in this process; return the WSGI application."""
    from Zope2.Startup.run import configure_wsgi

    starter = configure_wsgi(str(conf))
    # Not starter.prepare(): it sets the locale of the environment, which may not be installed.
    starter.setupPublisher()
    starter.startZope()
    from zope.event import notify
    from zope.processlifetime import ProcessStarting
    from ZPublisher.httpexceptions import HTTPExceptionHandler
    from ZPublisher.WSGIPublisher import publish_module

    notify(ProcessStarting())
    return HTTPExceptionHandler(publish_module)


def main() -> None:
    backend, dsn, folder, threads = sys.argv[1:]
    # Plone's output must not come before the port.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    application = start(configure(Path(folder), backend, dsn, int(threads)))
    from waitress.server import create_server

    server = create_server(application, host="127.0.0.1", port=0, threads=int(threads))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    threading.Thread(target=lambda: (sys.stdin.read(), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()
    print(server.effective_port, file=channel, flush=True)
    server.run()


if __name__ == "__main__":
    main()
