"""A primary, its standby, a Zope on each, and HAProxy with the configuration of the documentation."""

from checks.topology.standby import asked
from checks.topology.standby import balanced
from checks.topology.standby import PAGES
from checks.topology.standby import topology
from tests.integration.balancers import HAPROXY
from tests.integration.servers import execute
from tests.integration.statements import log_of
from tests.integration.waiting import until
from typing import Any

import pytest
import requests


ADMIN = ("admin", "admin")
JSON = {"Accept": "application/json"}
#: Options of requests that editors send.
OF_EDITORS = ({"auth": ADMIN}, {"cookies": {"__ac": "somebody"}}, {"headers": {"Host": "edit.localhost"}})


def ask(url: str, method: str = "GET", **options: Any) -> requests.Response:
    return requests.request(method, f"{url}/en", timeout=60, allow_redirects=False, **options)


def served_by(balancer: str, **options: Any) -> str:
    """Return the name of the Zope that has answered with a page; empty if none has."""
    answer = ask(balancer, **options)
    return answer.headers.get("X-Served-By", "") if answer.status_code == 200 else ""


def description(balancer: str) -> str:
    """Return the description of the folder, as shown to a visitor."""
    answer = ask(balancer, headers=JSON)
    return str(answer.json()["description"]) if answer.status_code == 200 else ""


def describe(site: str, text: str) -> requests.Response:
    return ask(site, "PATCH", auth=ADMIN, headers=JSON, json={"description": text})


@pytest.mark.slow
@pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed (Debian: apt-get install haproxy)")
def test_visitors_get_the_reader_while_it_is_ready_and_editors_the_writer() -> None:
    with topology(objects=40, max_replay_lag=1.0) as running:
        assert asked(running.primary, running.reader) == [0] * len(PAGES)
        assert min(asked(running.primary, running.writer)) > 0
        assert describe(running.reader, "sent on").headers["Location"].startswith("http://edit.localhost:")
        with balanced(running) as balancer:
            until(lambda: served_by(balancer) == "reader1")
            assert {served_by(balancer, **options) for options in OF_EDITORS} == {"writer1"}
            assert describe(balancer, "saved").status_code == 204
            running.standby.catch_up()
            assert (served_by(balancer), description(balancer)) == ("reader1", "saved")
            execute(running.standby.dsn(), "SELECT pg_wal_replay_pause()")
            assert describe(balancer, "newer").status_code == 204
            until(lambda: description(balancer) == "newer")
            assert served_by(balancer) == "writer1"
            execute(running.standby.dsn(), "SELECT pg_wal_replay_resume()")
            until(lambda: served_by(balancer) == "reader1")
            # The standby has refused no statement.
            assert "ERROR" not in log_of(running.standby)
            running.reader_process.kill()
            until(lambda: served_by(balancer) == "writer1")
