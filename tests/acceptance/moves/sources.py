"""The original storages of a site: for each a zope.conf, and its server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from plone.pgcatalog.migration import copying
from tempfile import TemporaryDirectory
from ZODB.FileStorage import FileStorage
from zodb_pgjsonb.storage import PGJsonbStorage

import shutil
import socket
import subprocess
import sys
import time


KINDS = {"filestorage": "FileStorage", "zeo": "ZEO", "relstorage": "RelStorage"}
#: Tool that creates instances -> paths of its FileStorage and blobs, below the folder.
LAYOUTS = {
    "mkwsgiinstance": ("var/Data.fs", "var/blobstorage"),
    "cookiecutter-zope-instance": ("var/filestorage/Data.fs", "var/blobs"),
}
#: A setting of zope.conf besides its database: no move may lose it.
OUR_SETTING = "  OUR_SETTING kept\n"
#: As cookiecutter-zope-instance 3.1 writes it: with other names than mkwsgiinstance, and absolute paths.
COOKIECUTTER_CONF = """\
# This file was generated
%define INSTANCEHOME {folder}
instancehome $INSTANCEHOME

%define CLIENTHOME {folder}/var
clienthome $CLIENTHOME

debug-mode off
default-zpublisher-encoding utf-8

<environment>
    CHAMELEON_CACHE {folder}/var/cache
</environment>
<dos_protection>
    form-memory-limit 1MB
</dos_protection>

# Database
<zodb_db main>
    mount-point /
    cache-size 30000
    <filestorage>
        path {folder}/var/filestorage/Data.fs
        blob-dir {folder}/var/blobs
        pack-keep-old true
    </filestorage>
</zodb_db>
"""
COOKIECUTTER_INI = "[app:zope]\nuse = egg:Zope#main\nzope_conf = %(here)s/zope.conf\n"
COOKIECUTTER_FOLDERS = ("etc", "var/blobs", "var/cache", "var/filestorage", "var/log")
ZEO_CLIENT = """\
  <zeoclient>
    server {address}
    blob-dir {folder}/var/zeocache
  </zeoclient>
"""
ZEO_SERVER = """\
<zeo>
  address {address}
</zeo>
<filestorage 1>
  path {data}
  blob-dir {blobs}
</filestorage>
"""
#: Seconds until a ZEO server answers, on a busy machine.
PATIENCE = 120


def make_instance(folder: Path, layout: str) -> None:
    """Create an instance of Zope in *folder*, like the tool *layout* of LAYOUTS."""
    if layout == "mkwsgiinstance":
        command = [sys.executable, "-m", "Zope2.utilities.mkwsgiinstance", "-d", str(folder), "-u", "admin:admin"]
        subprocess.run(command, check=True, capture_output=True)
        conf = (folder / "etc" / "zope.conf").read_text("utf-8")
        # Unlike Zope, Plone needs a folder for blobs.
        conf = conf.replace("var/Data.fs\n", "var/Data.fs\n     blob-dir $INSTANCE/var/blobstorage\n")
    else:
        for name in COOKIECUTTER_FOLDERS:
            (folder / name).mkdir(parents=True)
        conf = COOKIECUTTER_CONF.format(folder=folder)
        (folder / "etc" / "zope.ini").write_text(COOKIECUTTER_INI)
    # A comment of Zope also contains the name of the section.
    conf = conf.replace("\n<environment>\n", f"\n<environment>\n{OUR_SETTING}")
    (folder / "etc" / "zope.conf").write_text(conf)


def places(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the paths in *folder* of the FileStorage of *name*, a tool of LAYOUTS or ``back``, and of its blobs."""
    data, blobs = LAYOUTS.get(name, ("var/back/Data.fs", "var/back/blobs"))
    return folder / data, folder / blobs


def take_file(folder: Path, layout: str, data: Path, blobs: Path) -> None:
    """Copy a FileStorage to the path of the old one, or of the ZEO server."""
    new_data, new_blobs = places(folder, layout)
    shutil.copy(data, new_data)
    shutil.copytree(blobs, new_blobs, dirs_exist_ok=True)


@contextmanager
def zeo_server(folder: Path, layout: str) -> Iterator[str]:
    """Serve the old FileStorage in *folder* by a ZEO server process; yield the storage section of a client."""
    data, blobs = places(folder, layout)
    command = [sys.executable, "-W", "ignore", "-m", "ZEO.runzeo", "-C", str(folder / "etc" / "zeo.conf")]
    # The length of a socket's path is limited.
    with TemporaryDirectory(prefix="pgcatalog-zeo-", dir="/tmp") as short:
        address = f"{short}/zeo.sock"
        (folder / "etc" / "zeo.conf").write_text(ZEO_SERVER.format(data=data, blobs=blobs, address=address))
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(address, server)
            yield ZEO_CLIENT.format(folder=folder, address=address)
        finally:
            server.terminate()
            server.wait()


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    """Return when a server listens at *address*.  Raises TimeoutError, also if *server* has ended."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(address) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"no ZEO server at {address}")


def file_in(folder: Path, name: str = "back") -> FileStorage:
    """Open the FileStorage of *name*, at the path from ``places``."""
    data, blobs = places(folder, name)
    return FileStorage(str(data), blob_dir=str(blobs))


def copied_to_file(dsn: str, folder: Path) -> FileStorage:
    """Copy the objects of the database *dsn* to a FileStorage in *folder*, and return it, open."""
    source = PGJsonbStorage(dsn=dsn, cache_warm_pct=0)
    target = FileStorage(f"{folder}/Data.fs", blob_dir=f"{folder}/blobs")
    copying.copy(copying.SourceStorage(source), target)
    source.close()
    return target
