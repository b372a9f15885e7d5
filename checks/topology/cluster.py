"""Two PostgreSQL servers under Patroni, three members of etcd, and HAProxy before the servers, on this machine.

Their configurations are those of the documentation (docs/how-to/patroni.yml, docs/load-balancing/patroni.cfg), except for
addresses: each Patroni queries only the member of etcd beside it, so that one server can be cut off from etcd.
"""

from checks.soak.clients import Client
from checks.topology.nodes import ClusterError
from checks.topology.nodes import DIES_WITH_US
from checks.topology.nodes import ETCD
from checks.topology.nodes import LIMIT
from checks.topology.nodes import Member
from checks.topology.nodes import Node
from checks.topology.zope import ROOT
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from demo.server import free_port
from pathlib import Path
from plone.pgcatalog.testing.host import choose_binaries
from plone.pgcatalog.testing.host import ServerUser
from psycopg.conninfo import make_conninfo
from random import Random
from tests.integration.balancers import end
from tests.integration.balancers import HAPROXY
from tests.integration.balancers import HOST
from typing import Any
from typing import Self

import importlib.metadata
import math
import psycopg
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import yaml


PATRONI_YML = ROOT / "docs" / "how-to" / "patroni.yml"
HAPROXY_CFG = ROOT / "docs" / "load-balancing" / "patroni.cfg"
#: The ways in which a leader fails.
KILLED, PAUSED, CUT = "`kill -9` of Patroni and PostgreSQL", "both stopped (`SIGSTOP`)", "cut off from etcd"
#: A requested change of the leader.
SWITCHED = "nothing: a switchover"
#: Parameters of Zope's connections, from docs/how-to/high-availability.md.
PARAMETERS = {
    "target_session_attrs": "read-write",
    "connect_timeout": 3,
    "tcp_user_timeout": 10000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
PAUSE = 0.1
#: Number of lines of each log that an error shows.
LAST_LINES = 25


def missing() -> str:
    """Return the programs that have to be installed; "" if all exist."""
    programs = {"etcd (Debian: etcd-server)": ETCD, "haproxy": HAPROXY, "setpriv": shutil.which("setpriv")}
    return ", ".join(name for name, path in programs.items() if path is None)


class Cluster:
    """Two servers, a primary and a standby; ``dsn`` leads through HAProxy to the primary.

    *parameters* are PostgreSQL's.  *ways* are the failures of the leader, one after the other; afterwards it is killed.
    ``failures`` records for each: the way, the new leader, seconds until it accepted writes, and until HAProxy led to it;
    how the former leader became a standby.
    """

    def __init__(self, synchronous: bool, parameters: Mapping[str, str], ways: Sequence[str] = ()) -> None:
        self.synchronous = synchronous
        self.version = ""
        self.failures: list[dict[str, Any]] = []
        self._ways = iter(ways)
        self._temporary = tempfile.TemporaryDirectory(prefix="pgcatalog-cluster-")
        self.folder = Path(self._temporary.name)
        self._password = secrets.token_urlsafe(16)
        self.members = [Member(f"etcd{number}", self.folder) for number in (1, 2, 3)]
        settings = self._settings(parameters)
        self.nodes = [Node(f"db{n}", self.folder, self.members[n - 1], settings) for n in (1, 2)]
        self._balancer: subprocess.Popen[str] | None = None
        self._port = free_port(HOST, 0)

    def _settings(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        settings: dict[str, Any] = yaml.safe_load(PATRONI_YML.read_text("utf-8"))
        dcs = settings["bootstrap"]["dcs"]
        dcs["synchronous_mode"] = self.synchronous
        dcs["postgresql"]["parameters"] |= {**parameters, "unix_socket_directories": ""}
        postgresql = settings["postgresql"]
        postgresql["bin_dir"] = str(choose_binaries(ServerUser(), None)[0])
        postgresql["pg_hba"] = [line.replace("10.0.0.0/24", f"{HOST}/32") for line in postgresql["pg_hba"]]
        for user in postgresql["authentication"].values():
            user["password"] = self._password
        return settings

    # -- start and end

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        for member in self.members:
            member.start(self.members)
        self._wait_for("etcd is healthy", lambda: all(member.is_healthy() for member in self.members))
        first, second = self.nodes
        first.start()
        self._wait_for("the first server leads", first.is_leader)
        second.start()
        self._wait_for("the second follows", lambda: first.has_follower(second, self.synchronous))
        # Until the first failure, a leader on a busy machine does not step down because etcd answers too late.
        self._set_paused(True)
        configuration = self.folder / "haproxy.cfg"
        configuration.write_text(self._haproxy(), "utf-8")
        self._balancer = subprocess.Popen(
            [*DIES_WITH_US, str(HAPROXY), "-db", "-q", "-f", str(configuration)], text=True
        )
        self._wait_for("HAProxy leads to the first", lambda: self._leads_to(first))
        with psycopg.connect(self.dsn("postgres")) as connection:
            self.version = str(connection.info.parameter_status("server_version"))

    def _haproxy(self) -> str:
        text = HAPROXY_CFG.read_text("utf-8").replace("bind :5000", f"bind {HOST}:{self._port}")
        for number, node in enumerate(self.nodes, 1):
            text = text.replace(f"10.0.0.3{number}:5432", f"{HOST}:{node.port}")
            text = re.sub(rf"(server {node.name} .*) port \d+", rf"\1 port {node.rest}", text)
        return text

    def __exit__(self, *error: object) -> None:
        if self._balancer is not None:
            end(self._balancer)
        for node in self.nodes:
            node.stop()
        for member in self.members:
            if member.process is not None:
                member.process.send_signal(signal.SIGCONT)
                end(member.process)
        self._temporary.cleanup()

    # -- called by the soak

    def createdb(self, name: str) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))

    def dsn(self, dbname: str) -> str:
        place: dict[str, Any] = {"host": HOST, "port": self._port, "user": "postgres", "password": self._password}
        return make_conninfo(**{**place, "dbname": dbname, **PARAMETERS})

    def prepare(self, clients: Sequence[Client], random: Random) -> float:
        """Return inf if the standby is synchronous, otherwise -inf: the lag of an asynchronous standby is unknown."""
        self._set_paused(False)
        return math.inf if self.synchronous else -math.inf

    def fail_over(self) -> None:
        """Let the leader fail in the next of the ways; wait until the other one accepts writes, and HAProxy leads to it."""
        former, other = self.nodes if self.nodes[0].is_leader() else reversed(self.nodes)
        way = next(self._ways, KILLED)
        begin = time.monotonic()
        if way == KILLED:
            former.kill()
        elif way == PAUSED:
            former.signal(signal.SIGSTOP)
        elif way == SWITCHED:
            former.switch_to(other)
        else:
            assert former.member.process is not None
            former.member.process.send_signal(signal.SIGSTOP)
        self._wait_for(f"{other.name} takes over", other.is_leader)
        promoted = time.monotonic() - begin
        self._wait_for(f"HAProxy leads to {other.name}", lambda: self._leads_to(other))
        led = time.monotonic() - begin
        self.failures.append({"way": way, "leader": other.name, "promoted": round(promoted, 1), "led": round(led, 1)})
        self._former, self._logged = former, len(former.log.read_text("utf-8", "replace"))

    def rejoin(self) -> None:
        """Start the former leader again; wait until it follows."""
        former, failure = self._former, self.failures[-1]
        begin = time.monotonic()
        if failure["way"] == KILLED:
            former.start()
        elif failure["way"] == PAUSED:
            former.signal(signal.SIGCONT)
        elif failure["way"] == CUT:
            assert former.member.process is not None
            former.member.process.send_signal(signal.SIGCONT)
        [leader] = [node for node in self.nodes if node is not former]
        self._wait_for(f"{former.name} follows", lambda: leader.has_follower(former, self.synchronous))
        log = former.log.read_text("utf-8", "replace")[self._logged :]
        failure["rejoined"] = round(time.monotonic() - begin, 1)
        failure["by"] = "pg_rewind" if "pg_rewind exit code=0" in log else "replay"

    def _set_paused(self, is_paused: bool) -> None:
        self.nodes[0].set_paused(is_paused)
        what = "paused" if is_paused else "no longer paused"
        self._wait_for(f"Patroni is {what}", lambda: all(node.is_paused() is is_paused for node in self.nodes))

    def _wait_for(self, what: str, done: Callable[[], bool], limit: float = LIMIT) -> None:
        """Wait until *done*.  Raises ClusterError after *limit* seconds, with the last log lines of Patroni and etcd."""
        deadline = time.monotonic() + limit
        while not done():
            if time.monotonic() > deadline:
                logs = {
                    path.name: path.read_text("utf-8", "replace").splitlines() for path in self.folder.glob("*.log")
                }
                last = [f"{name}: {line}" for name, lines in sorted(logs.items()) for line in lines[-LAST_LINES:]]
                raise ClusterError("\n".join([f"{what}: not within {limit:.0f} s", *last]))
            time.sleep(PAUSE)

    def _leads_to(self, node: Node) -> bool:
        """Whether new connections through HAProxy reach *node* only, and *node* accepts writes.

        Until its first check of a server ends, HAProxy deals connections to the standby, too, each in turn.
        """
        return all(self._reached() == (node.port, False) for _ in self.nodes)

    def _reached(self) -> tuple[Any, ...] | None:
        """Return the port of the server that a new connection reaches, and whether it is a standby; None if it fails."""
        query = "SELECT inet_server_port(), pg_is_in_recovery()"
        with suppress(psycopg.OperationalError), psycopg.connect(self.dsn("postgres")) as connection:
            return connection.execute(query).fetchone()
        return None

    def versions(self) -> dict[str, str]:
        """Return the versions of the running programs."""
        told = subprocess.run([str(ETCD), "--version"], capture_output=True, text=True, check=True).stdout
        balancer = subprocess.run([str(HAPROXY), "-v"], capture_output=True, text=True, check=True).stdout
        return {
            "Patroni": importlib.metadata.version("patroni"),
            "etcd": told.split()[2],
            "HAProxy": balancer.split()[2].partition("-")[0],
            "PostgreSQL": self.version,
        }
