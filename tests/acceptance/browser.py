"""The system's Chromium, a site that it can visit, and a manager who has logged in."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from playwright.sync_api import sync_playwright
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import searches
from tests.integration.waiting import background_ended
from tests.integration.web import application
from typing import Any
from waitress import wasyncore
from waitress.server import create_server

import pytest
import shutil
import threading


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
#: Longest wait for a page or an element, in milliseconds.
PATIENCE = 120_000
#: The marks of a module whose tests are done by a browser.
BROWSER_TESTS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason=f"no browser: none of {', '.join(BROWSERS)} is installed"),
]


@contextmanager
def served(db: Any, site: str = "plone") -> Iterator[str]:
    """Yield the address of a *site* in *db*, served over HTTP; at the end its background threads have ended as well."""
    server = create_server(application(db), host="127.0.0.1", port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        # Not by the number: Plone themes no page of the host 127.0.0.1.
        yield f"http://localhost:{server.effective_port}/{site}"
    finally:
        server.task_dispatcher.shutdown()
        # By the thread that waits for them: who closes sockets for which another thread waits makes it fail.
        server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
        thread.join(PATIENCE / 1000)
        assert not thread.is_alive()
        assert background_ended()
        assert recorder.flush(30)
        assert searches.flush(30)


def opened(browser: Browser, width: int = 1280, height: int = 900, **options: Any) -> Any:
    """Return the context of a browser that is patient, and English unless *options* say otherwise."""
    expect.set_options(timeout=PATIENCE)
    context = browser.new_context(viewport={"width": width, "height": height}, **{"locale": "en-US", **options})
    context.set_default_timeout(PATIENCE)
    return context


def fits(page: Page) -> bool:
    """Return whether nobody has to scroll sideways to read the page."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Chromium's sandbox does not run for root, nor where a container has no user namespaces.
    options: Any = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
    with sync_playwright() as playwright, playwright.chromium.launch(**options) as browser:
        yield browser


@contextmanager
def managed(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """Yield a page of a browser in which the manager has logged in; *options* are those of ``opened``."""
    with opened(browser, **options) as context:
        page = context.new_page()
        page.goto(f"{address}/login")
        page.fill("input[name=__ac_name]", "boss")
        page.fill("input[name=__ac_password]", "secret")
        page.locator("input[name=__ac_password]").press("Enter")
        page.wait_for_url(lambda url: "login" not in url)
        yield page


@pytest.fixture
def page(browser: Browser, address: str, tmp_path: Path) -> Iterator[Page]:
    """A page of a browser in which the manager has logged in; a picture of what it shows at the end is kept."""
    with managed(browser, address) as page:
        yield page
        page.screenshot(path=tmp_path / "end.png", full_page=True)
