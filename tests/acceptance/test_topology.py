"""Real servers, Zopes in processes of their own, and HAProxy with the configuration of the documentation."""

from checks.topology.standby import asked
from checks.topology.standby import balanced
from checks.topology.standby import PAGES
from checks.topology.standby import Topology
from checks.topology.standby import topology
from collections.abc import Iterator
from tests.integration.balancers import HAPROXY
from tests.integration.servers import execute
from tests.integration.statements import log_of
from tests.integration.waiting import until
from typing import Any

import pytest
import requests


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed (Debian: apt-get install haproxy)"),
]

ADMIN = ("admin", "admin")
JSON = {"Accept": "application/json"}


@pytest.fixture(scope="module")
def running() -> Iterator[Topology]:
    with topology(objects=40, max_replay_lag=1.0) as running:
        yield running


@pytest.fixture(scope="module")
def balancer(running: Topology) -> Iterator[str]:
    with balanced(running) as url:
        until(lambda: served_by(url) == "reader1")
        yield url


def ask(url: str, method: str = "GET", **options: Any) -> requests.Response:
    return requests.request(method, url, timeout=60, allow_redirects=False, **options)


def served_by(balancer: str, **options: Any) -> str:
    """Return the name of the Zope that has answered with a page; empty if none has."""
    answer = ask(f"{balancer}/en", **options)
    return answer.headers.get("X-Served-By", "") if answer.status_code == 200 else ""


def described(balancer: str) -> str:
    """Return the description of the folder, as shown to a visitor."""
    answer = ask(f"{balancer}/en", headers=JSON)
    return str(answer.json()["description"]) if answer.status_code == 200 else ""


def describe(site: str, text: str) -> requests.Response:
    return ask(f"{site}/en", "PATCH", auth=ADMIN, headers=JSON, json={"description": text})


def test_page_of_a_reader_sends_the_primary_nothing(running: Topology) -> None:
    assert asked(running.primary, running.reader) == [0] * len(PAGES)
    assert min(asked(running.primary, running.writer)) > 0


def test_visitors_get_a_reader_and_editors_the_writer(balancer: str) -> None:
    assert served_by(balancer) == "reader1"
    for options in ({"auth": ADMIN}, {"cookies": {"__ac": "somebody"}}, {"headers": {"Host": "edit.localhost"}}):
        assert served_by(balancer, **options) == "writer1"


def test_a_save_reaches_the_writer(running: Topology, balancer: str) -> None:
    assert describe(balancer, "saved").status_code == 204
    running.standby.catch_up()
    assert served_by(balancer) == "reader1"
    assert described(balancer) == "saved"


def test_a_save_on_a_reader_is_sent_to_the_writer(running: Topology) -> None:
    answer = describe(running.reader, "sent on")
    assert answer.status_code == 307
    assert answer.headers["Location"].startswith("http://edit.localhost:")


def test_writer_answers_without_a_ready_reader(running: Topology, balancer: str) -> None:
    execute(running.standby.dsn(), "SELECT pg_wal_replay_pause()")
    try:
        assert describe(balancer, "newer").status_code == 204
        until(lambda: described(balancer) == "newer")
        assert served_by(balancer) == "writer1"
    finally:
        execute(running.standby.dsn(), "SELECT pg_wal_replay_resume()")
    until(lambda: served_by(balancer) == "reader1")


def test_the_standby_has_refused_nothing(running: Topology) -> None:
    """From the start of its Zope on."""
    assert "ERROR" not in log_of(running.standby)


def test_writer_answers_when_a_reader_ends(running: Topology, balancer: str) -> None:
    running.reader_process.kill()
    until(lambda: served_by(balancer) == "writer1")
