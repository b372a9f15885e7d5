"""HAProxy and Varnish with the configurations of docs/how-to/crawlers.md, in front of a stub of Zope."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from demo.server import free_port
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from pathlib import Path
from tests.integration.balancers import end
from tests.integration.balancers import HAPROXY
from tests.integration.balancers import HOST
from tests.integration.balancers import wait_until_it_listens
from tests.integration.waiting import until

import pytest
import requests
import shutil
import subprocess
import threading
import time


pytestmark = pytest.mark.slow

CONFIGURATIONS = Path(__file__).parents[2] / "docs" / "load-balancing"
VARNISH = shutil.which("varnishd") or shutil.which("varnishd", path="/usr/sbin:/usr/local/sbin")
CRAWLER = {"User-Agent": "Mozilla/5.0 (compatible; ExampleBot/1.0)"}
SEARCH = "/@@search?SearchableText=water"
FILTERED = [
    "/@@search?SearchableText=water&Subject:list=Winter",
    "/de/search?Subject%3Alist=Winter",
    "/search?portal_type=Document",
    "/@@search?facet.Date:list=2025",
    "/@@search?similar=1234",
    "/@@search?SearchableText=water&facets=along",
    "/++api++/@querystring-search?query=x",
]


class Zope:
    """Stub that answers every request; searches wait while ``goes_on`` is not set."""

    def __init__(self) -> None:
        self.goes_on, self.lock = threading.Event(), threading.Lock()
        self.paths: list[str] = []
        self.searches = self.most_searches = 0

    def answer(self, path: str) -> None:
        with self.lock:
            self.paths.append(path)
            self.searches += "search" in path
            self.most_searches = max(self.most_searches, self.searches)
        if "search" in path:
            self.goes_on.wait()
            with self.lock:
                self.searches -= 1


@pytest.fixture
def zope() -> Zope:
    return Zope()


def with_haproxy(folder: Path, port: int, server_port: int) -> list[str]:
    """Write the configuration of HAProxy into *folder*; return the command that starts it."""
    if HAPROXY is None:
        pytest.skip("haproxy is not installed (Debian: apt-get install haproxy)")
    text = (CONFIGURATIONS / "crawlers.cfg").read_text("utf-8").replace("bind :80", f"bind {HOST}:{port}")
    (folder / "haproxy.cfg").write_text(text.replace("10.0.0.11:8080", f"{HOST}:{server_port}"))
    return [HAPROXY, "-db", "-q", "-f", str(folder / "haproxy.cfg")]


def with_varnish(folder: Path, port: int, server_port: int) -> list[str]:
    """Write the configuration of Varnish into *folder*; return the command that starts it."""
    if VARNISH is None:
        pytest.skip("varnishd is not installed (Debian: apt-get install varnish-modules)")
    text = (CONFIGURATIONS / "crawlers.vcl").read_text("utf-8").replace("10.0.0.11", HOST)
    (folder / "crawlers.vcl").write_text(text.replace('"8080"', f'"{server_port}"'))
    options = ["-j", "none", "-n", str(folder / "varnish"), "-s", "malloc,16m"]
    return [VARNISH, "-F", "-a", f"{HOST}:{port}", "-f", str(folder / "crawlers.vcl"), *options]


@pytest.fixture(params=[with_haproxy, with_varnish])
def url(request: pytest.FixtureRequest, zope: Zope, tmp_path: Path) -> Iterator[str]:
    """Base URL served by HAProxy, or Varnish."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            zope.answer(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    port = free_port(HOST, 0)
    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = request.param(tmp_path, port, server.server_port)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        try:
            wait_until_it_listens(process, port)
            yield f"http://{HOST}:{port}"
        finally:
            zope.goes_on.set()
            end(process)
            server.shutdown()


def get(url: str, path: str, headers: dict[str, str] | None = None) -> requests.Response:
    return requests.get(url + path, headers=headers, timeout=60)


def test_crawler_gets_pages_and_marked_searches_but_no_filtered_ones(url: str, zope: Zope) -> None:
    zope.goes_on.set()
    marks = [get(url, path).headers.get("X-Robots-Tag") for path in (SEARCH, "/@@search", "/news?SearchableText=water")]
    assert marks == ["noindex, follow", None, None]
    assert zope.paths[0].endswith("/Plone/VirtualHostRoot" + SEARCH)
    assert [get(url, path, CRAWLER).status_code for path in ("/", "/news", "/@@search", SEARCH)] == [200] * 4
    assert {get(url, path, CRAWLER).status_code for path in FILTERED} == {403}
    assert {get(url, path).status_code for path in FILTERED} == {200}


def test_address_with_too_many_searches_gets_only_pages(url: str, zope: Zope) -> None:
    zope.goes_on.set()
    begin = time.monotonic()
    statuses = [get(url, SEARCH).status_code for _ in range(90)]
    assert statuses[:60] == [200] * 60
    # Varnish lets one more request through each second.
    assert statuses.count(429) >= 29 - (time.monotonic() - begin)
    assert set(statuses) == {200, 429}
    assert get(url, "/news").status_code == 200


@pytest.mark.parametrize("url", [with_haproxy], indirect=True)
def test_searches_are_queued_and_pages_are_not(url: str, zope: Zope) -> None:
    with ThreadPoolExecutor(5) as visitors:
        searches = [visitors.submit(get, url, SEARCH) for _ in range(5)]
        until(lambda: zope.searches == 2)
        assert get(url, "/news").status_code == 200
        zope.goes_on.set()
        assert [search.result().status_code for search in searches] == [200] * 5
    assert zope.most_searches == 2
