"""A member of etcd, and a PostgreSQL server under Patroni, each as processes of this machine."""

from collections.abc import Sequence
from contextlib import suppress
from demo.server import free_port
from pathlib import Path
from tests.integration.balancers import end
from tests.integration.balancers import HOST
from typing import Any

import os
import psutil
import requests
import shutil
import signal
import subprocess
import sys
import yaml


ETCD = shutil.which("etcd")
#: PostgreSQL refuses to run as root: in this user namespace its processes have another user id, which owns root's files.
AS_SOMEBODY = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
#: Ends the process when its parent ends for any reason.
DIES_WITH_US = ("setpriv", "--pdeathsig", "TERM", "--")
#: Seconds until an expected event is a failure; it usually takes at most twenty.
LIMIT = 180.0
#: Bytes that a standby may lack and still take over: Patroni's own default.
MAXIMUM_LAG = 1 << 20


class ClusterError(Exception):
    """The cluster did not reach the expected state."""


class Member:
    """A member of etcd."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.url, self.peer = (f"http://{HOST}:{free_port(HOST, 0)}" for _ in range(2))
        self.process: subprocess.Popen[str] | None = None

    def start(self, members: Sequence["Member"]) -> None:
        options = {
            "name": self.name,
            "data-dir": self.folder / self.name,
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": self.peer,
            "initial-advertise-peer-urls": self.peer,
            "initial-cluster": ",".join(f"{member.name}={member.peer}" for member in members),
            # A member on a busy machine is not lost.
            "heartbeat-interval": 300,
            "election-timeout": 3000,
        }
        command = [*DIES_WITH_US, str(ETCD), *(f"--{name}={value}" for name, value in options.items())]
        with (self.folder / f"{self.name}.log").open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, text=True)

    def is_healthy(self) -> bool:
        with suppress(requests.RequestException):
            return requests.get(f"{self.url}/health", timeout=2).json()["health"] == "true"
        return False


class Node:
    """A PostgreSQL server under Patroni, which uses the *member* of etcd."""

    def __init__(self, name: str, folder: Path, member: Member, settings: dict[str, Any]) -> None:
        self.name = name
        self.member = member
        self.data = folder / f"{name}-data"
        self.port, self.rest = (free_port(HOST, 0) for _ in range(2))
        self.log = folder / f"{name}.log"
        self._configuration = folder / f"{name}.yml"
        self._configuration.write_text(yaml.safe_dump(self._settings(settings)), "utf-8")
        self._process: subprocess.Popen[str] | None = None

    def _settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        place = {"listen": f"{HOST}:{self.port}", "connect_address": f"{HOST}:{self.port}"}
        rest = dict.fromkeys(place, f"{HOST}:{self.rest}")
        # With use_proxies, Patroni does not look for the other members.
        etcd = {"host": self.member.url.removeprefix("http://"), "use_proxies": True}
        more = {"data_dir": str(self.data), "pgpass": str(self.data.with_suffix(".pass")), **place}
        return settings | {
            "name": self.name,
            "restapi": rest,
            "etcd3": etcd,
            "postgresql": settings["postgresql"] | more,
        }

    def start(self) -> None:
        """Start Patroni, which starts PostgreSQL."""
        somebody = AS_SOMEBODY if os.getuid() == 0 else ()
        command = [*somebody, *DIES_WITH_US, sys.executable, "-m", "patroni", str(self._configuration)]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, text=True
            )

    def stop(self) -> None:
        """End both, and all their remaining processes."""
        if self._process is not None:
            self.signal(signal.SIGCONT)
            end(self._process)
            self.signal(signal.SIGKILL)

    def kill(self) -> None:
        """SIGKILL both, like a loss of power."""
        self.signal(signal.SIGSTOP)  # so that none of them notices the other's end
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to Patroni, and to the processes of PostgreSQL: those whose working folder is that of the data."""
        assert self._process is not None
        pids = [] if self._process.poll() is not None else [self._process.pid]
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.cwd() == str(self.data):
                    pids.append(process.pid)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def switch_to(self, other: "Node") -> None:
        """Make Patroni switch over to *other*.  Raises ClusterError if it does not."""
        wanted = {"leader": self.name, "candidate": other.name}
        answer = requests.post(f"http://{HOST}:{self.rest}/switchover", json=wanted, timeout=LIMIT)
        if answer.status_code != 200:
            raise ClusterError(f"switchover: {answer.text}")

    def set_paused(self, is_paused: bool) -> None:
        """Pause failovers of the whole cluster, as during maintenance, or resume them."""
        wanted = {"pause": is_paused or None}
        requests.patch(f"http://{HOST}:{self.rest}/config", json=wanted, timeout=LIMIT).raise_for_status()

    def is_paused(self) -> bool | None:
        """Return whether failovers are paused; None if Patroni does not answer."""
        with suppress(requests.RequestException):
            return bool(requests.get(f"http://{HOST}:{self.rest}/patroni", timeout=2).json().get("pause"))
        return None

    def is_leader(self) -> bool:
        with suppress(requests.RequestException):
            return requests.get(f"http://{HOST}:{self.rest}/primary", timeout=2).status_code == 200
        return False

    def has_follower(self, other: "Node", synchronous: bool) -> bool:
        """Whether *other* streams from this leader on its timeline, and is close enough to take over."""
        with suppress(requests.RequestException, ValueError):
            told = requests.get(f"http://{HOST}:{self.rest}/cluster", timeout=2).json()["members"]
            members = {member["name"]: member for member in told}
            one, leader = members.get(other.name, {}), members.get(self.name, {})
            streams = one.get("state") == "streaming" and one.get("timeline") == leader.get("timeline")
            is_close = isinstance(one.get("lag"), int) and one["lag"] < MAXIMUM_LAG
            return streams and is_close and one["role"] == ("sync_standby" if synchronous else "replica")
        return False
