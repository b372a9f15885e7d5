"""Builds the front-end in ``frontend/`` once, and serves it beside a Zope."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from urllib.error import HTTPError
from urllib.error import URLError
from urllib.request import urlopen

import os
import re
import shutil
import subprocess
import time


FRONTEND = Path(__file__).parent.parent / "frontend"
BUILD = FRONTEND / "build"
#: The sources of a build, below FRONTEND.
SOURCES = ("package-lock.json", "babel.config.js", "razzle.config.js", "tsconfig.json", "src", "packages", "locales")
#: Supported versions of node.
NODES = (20, 22)
#: Seconds until a started server must answer.
PATIENCE = 180


class VoltoError(Exception):
    """Failure to build or start the front-end; the message gives the reason."""


def lacking() -> str | None:
    """Return the missing requirement for a build of the front-end; None if there is none."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return "no node or no npm: Volto needs node 20 or 22, with npm"
    version = subprocess.run([node, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    found = re.match(r"v(\d+)\.", version)
    if found is None or int(found[1]) not in NODES:
        return f"node {version}: this Volto runs on {' or '.join(map(str, NODES))}"
    return None


def _fingerprint() -> str:
    """Return a hash of the SOURCES."""
    digest = sha256()
    for name in SOURCES:
        path = FRONTEND / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            # Volto writes JSON files beside their sources.
            if file.is_file() and file.parent != FRONTEND / "locales" and ".test." not in file.name:
                digest.update(f"{file.relative_to(FRONTEND)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def is_built() -> bool:
    """Return whether there is a build of the current sources."""
    stamp = BUILD / "sources.txt"
    return stamp.exists() and stamp.read_text("utf-8") == _fingerprint()


def build() -> None:
    """Build the front-end unless it is built; this takes 2.7 GB of memory and some minutes.  Raises VoltoError."""
    if is_built():
        return
    if reason := lacking():
        raise VoltoError(reason)
    _run("npm", "ci")
    volto = FRONTEND / "node_modules/@plone/volto"
    (FRONTEND / "theme").mkdir(exist_ok=True)
    shutil.copy(volto / "theme/theme.config", FRONTEND / "theme")
    shutil.copytree(volto / "public", FRONTEND / "public", dirs_exist_ok=True)
    _run("npm", "run", "build")
    (BUILD / "sources.txt").write_text(_fingerprint(), "utf-8")


def _run(*command: str) -> None:
    # Razzle writes parts of the environment into the build, and they override the server's; in make, PORT is Plone's port.
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PORT", "HOST") and not name.startswith("RAZZLE_")
    }
    done = subprocess.run(
        command, cwd=FRONTEND, env={**variables, "NODE_ENV": "production", "NPM_CONFIG_INCLUDE": "dev"}
    )
    if done.returncode:
        raise VoltoError(f"{' '.join(command)}: status {done.returncode}")


@contextmanager
def served(site: str, port: int, log: Path, **environment: str) -> Iterator[str]:
    """Yield the address of the front-end of *site*, the address of a Plone site, served on *port* of this machine.

    *log* gets the server's output; *environment* has its runtime settings.  Raises VoltoError if it does not start.
    """
    variables = {
        **os.environ,
        "NODE_ENV": "production",
        "PORT": str(port),
        "RAZZLE_INTERNAL_API_PATH": site,
        **environment,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["node", "build/server.js"], cwd=FRONTEND, env=variables, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            address = f"http://localhost:{port}"
            _wait_for(address, process, log)
            yield address
        finally:
            process.terminate()
            process.wait()


def _wait_for(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            urlopen(address, timeout=PATIENCE).close()
            return
        except HTTPError:
            # Any answer shows that it is running.
            return
        except (URLError, ConnectionError):
            time.sleep(0.2)
    raise VoltoError(f"Volto does not start: {log.read_text('utf-8', 'replace')[-2000:]}")
