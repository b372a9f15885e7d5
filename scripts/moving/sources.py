"""The storages that a site comes from: for each a zope.conf, and what serves it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from scripts.moving import page
from ZODB.FileStorage import FileStorage

import shutil
import socket
import subprocess
import sys
import time


KINDS = {"filestorage": "FileStorage", "zeo": "ZEO", "relstorage": "RelStorage"}
#: What a zope.conf has besides its database: no move may lose it.
OWN_CONF = """\
%define INSTANCE /srv/plone
instancehome $INSTANCE
debug-mode off
<environment>
  OUR_SETTING kept
</environment>
<zodb_db main>
</zodb_db>
"""
OWN_INI = "[app:zope]\nuse = egg:Zope#main\nzope_conf = /srv/plone/old/zope.conf\n"
ZEO_CLIENT = """\
  <zeoclient>
    server {address}
    blob-dir {folder}/old/var/cache
  </zeoclient>
"""
ZEO_SERVER = """\
<zeo>
  address {address}
</zeo>
<filestorage 1>
  path {folder}/old/var/filestorage/Data.fs
  blob-dir {folder}/old/var/blobstorage
</filestorage>
"""
#: Seconds until a ZEO server answers, on a busy machine.
PATIENCE = 120


def conf(kind: str) -> str:
    """Return the text of ``old/zope.conf`` for a storage of *kind*; of ZEO that of the file that it serves."""
    block = page.snippets()["back-relstorage" if kind == "relstorage" else "back-filestorage"]
    block = block.replace("dbname=relstorage", "dbname=old").replace("var/back/", "old/var/")
    return page.with_block(OWN_CONF, block)


def folders(folder: Path) -> None:
    """Make the folders that the storages, and the configurations of Zope, need in *folder*."""
    for inner in ("filestorage", "blobstorage", "cache"):
        (folder / "old" / "var" / inner).mkdir(parents=True)
    (folder / "etc").mkdir()


def take_file(folder: Path, data: Path, blobs: Path) -> None:
    """Put a copy of a FileStorage where the old one, or that of the ZEO server, is."""
    shutil.copy(data, folder / "old" / "var" / "filestorage" / "Data.fs")
    shutil.copytree(blobs, folder / "old" / "var" / "blobstorage", dirs_exist_ok=True)


@contextmanager
def zeo_server(folder: Path) -> Iterator[str]:
    """Serve the old FileStorage in *folder* by a ZEO server in a process; yield the storage section of a client."""
    # The path of a socket is limited in length.
    address = str(folder / "zeo.sock")
    (folder / "old" / "zeo.conf").write_text(ZEO_SERVER.format(folder=folder, address=address))
    command = [sys.executable, "-W", "ignore", "-m", "ZEO.runzeo", "-C", str(folder / "old" / "zeo.conf")]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(address, server)
        yield ZEO_CLIENT.format(folder=folder, address=address)
    finally:
        server.terminate()
        server.wait()


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    """Return when somebody listens at *address*; raises TimeoutError, also when *server* has ended."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(address) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"no ZEO server at {address}")


def file_in(folder: Path, name: str = "back") -> FileStorage:
    """Open the FileStorage of ``name/zope.conf``."""
    var = folder / "var" / "back" if name == "back" else folder / name / "var"
    return FileStorage(str(var / "filestorage" / "Data.fs"), blob_dir=str(var / "blobstorage"))
